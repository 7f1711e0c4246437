/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmi_value: see pmi_value.h. The reader takes fragments of any length, so writer and reader may have different limits.
 */
#include "launch/pmi_value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

#define PUT_OVERHEAD_MAX 100 /* characters of a put beside key, name and value */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static size_t text_length(size_t count) { return (count * 8 + 5) / 6; }

static void text_write(const unsigned char *bytes, size_t count, char *text)
{
    uint32_t bits = 0;
    int held = 0;

    for (size_t i = 0; i < count; i++) {
        bits = bits << 8 | bytes[i];
        for (held += 8; held >= 6; held -= 6)
            *text++ = digits[bits >> (held - 6) & 63];
    }
    if (held)
        *text++ = digits[bits << (6 - held) & 63];
    *text = '\0';
}

static bool text_read(const char *text, unsigned char *bytes, size_t count)
{
    uint32_t bits = 0;
    int held = 0;

    for (size_t done = 0; done < count; text++) {
        const char *digit = *text ? strchr(digits, *text) : NULL;
        if (!digit)
            return false;
        bits = bits << 6 | (uint32_t)(digit - digits);
        held += 6;
        if (held >= 8) {
            held -= 8;
            bytes[done++] = (unsigned char)(bits >> held);
        }
    }
    return true;
}

static int fragment_name(const weft_pmi *pmi, uint32_t rank, const char *key, uint32_t fragment, char *name, size_t capacity)
{
    size_t length = (size_t)snprintf(name, capacity, "%u.%s.%u", rank, key, fragment);

    if (length < capacity && length <= pmi->key_max)
        return WEFT_OK;
    return weft_fail(WEFT_E_TOOLARGE, "the name %u.%s.%u is too long for this launcher's PMI server (limit: %zu characters)", rank, key,
                     fragment, pmi->key_max);
}

int weft_pmi_value_put(weft_pmi *pmi, const char *key, const void *bytes, size_t count)
{
    size_t max = WEFT_PMI_SEND_MAX - PUT_OVERHEAD_MAX - strlen(pmi->name), length;
    char name[128], *text, *fragment;
    int rc = WEFT_OK;

    if (count > WEFT_PMI_VALUE_MAX)
        return weft_fail(WEFT_E_TOOLARGE, "key %s: %zu bytes exceed the limit for PMI (%d)", key, count, WEFT_PMI_VALUE_MAX);
    text = malloc(text_length(count) + 32);
    if (!text)
        return weft_fail(WEFT_E_NOMEM, "no memory for the %zu bytes of key %s", count, key);
    text_write(bytes, count, text + snprintf(text, 32, "%zu.", count));
    length = strlen(text);
    if (max > pmi->value_max)
        max = pmi->value_max;
    fragment = malloc(max + 1);
    if (!fragment)
        rc = weft_fail(WEFT_E_NOMEM, "no memory for the %zu bytes of key %s", count, key);
    for (size_t at = 0, i = 0; at < length && !rc; at += max, i++) {
        snprintf(fragment, max + 1, "%s", text + at);
        rc = fragment_name(pmi, pmi->rank, key, (uint32_t)i, name, sizeof(name));
        if (!rc)
            rc = weft_pmi_put(pmi, name, fragment);
    }
    free(fragment);
    free(text);
    return rc;
}

static int value_damaged(uint32_t rank, const char *key, const char *fragment)
{
    return weft_fail(WEFT_E_OTHER,
                     "the launcher's PMI server returns for rank %u's key %s a value that the rank has not put: \"%.60s\"", rank, key,
                     fragment);
}

/* Appends the other fragments to `text`, which holds the first one and has a capacity of `length` characters. */
static int fragments_get(weft_pmi *pmi, uint32_t rank, const char *key, char *text, size_t length)
{
    char name[128], fragment[WEFT_PMI_SEND_MAX + 1];

    for (uint32_t i = 1; strlen(text) < length; i++) {
        size_t used = strlen(text);
        int rc = fragment_name(pmi, rank, key, i, name, sizeof(name));
        if (!rc)
            rc = weft_pmi_get(pmi, name, fragment, sizeof(fragment));
        if (rc == WEFT_E_UNSUPPORTED)
            return weft_fail(WEFT_E_OTHER, "the launcher's PMI server lacks a part of rank %u's key %s (%s)", rank, key, name);
        if (rc)
            return rc;
        if (!*fragment || used + strlen(fragment) > length)
            return value_damaged(rank, key, fragment);
        strcpy(text + used, fragment);
    }
    return WEFT_OK;
}

int weft_pmi_value_get(weft_pmi *pmi, uint32_t rank, const char *key, void *bytes, size_t *count)
{
    char name[128], fragment[WEFT_PMI_SEND_MAX + 1], *end;
    int rc = fragment_name(pmi, rank, key, 0, name, sizeof(name));

    if (!rc)
        rc = weft_pmi_get(pmi, name, fragment, sizeof(fragment));
    if (rc == WEFT_E_UNSUPPORTED)
        return weft_fail(rc, "rank %u has not put the key %s", rank, key);
    if (rc)
        return rc;
    unsigned long size = strtoul(fragment, &end, 10);
    size_t length = size <= WEFT_PMI_VALUE_MAX ? text_length(size) : 0;
    if (end == fragment || *end != '.' || size > WEFT_PMI_VALUE_MAX || strlen(end + 1) > length)
        return value_damaged(rank, key, fragment);
    if (size > *count)
        return weft_fail(WEFT_E_TOOLARGE, "key %s of rank %u has %lu bytes, more than the caller's %zu", key, rank, size, *count);
    char *text = malloc(length + 1);
    if (!text)
        return weft_fail(WEFT_E_NOMEM, "no memory for the %lu bytes of key %s", size, key);
    strcpy(text, end + 1);
    rc = fragments_get(pmi, rank, key, text, length);
    if (!rc && !text_read(text, bytes, size))
        rc = value_damaged(rank, key, text);
    if (!rc)
        *count = size;
    free(text);
    return rc;
}
