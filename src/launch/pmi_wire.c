/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmi_wire: see pmi_wire.h. Input from the launcher is not trusted; every length and field is checked.
 */
#include "launch/pmi_wire.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/knob.h"
#include "base/status.h"

#define LENGTH_BYTES 6       /* length prefix of a PMI-2 message */
#define MESSAGE_MAX 1000000 /* largest length in six digits */
#define SHOWN_MAX 120       /* characters of an unexpected message quoted in an error text */

static int wire_failed(weft_pmi_wire *wire, const char *what, const char *why)
{
    wire->is_broken = true;
    return weft_fail(WEFT_E_OTHER, "%s: %s (%s)", what, why, wire->where);
}

/* Waits until the descriptor is readable or writable: 0, or an error at the deadline. */
static int socket_wait(weft_pmi_wire *wire, short events, uint64_t deadline, const char *what, const char *hint)
{
    for (;;) {
        struct pollfd set = {.fd = wire->fd, .events = events};
        uint64_t now = weft_clock_ns();
        int rc = now < deadline ? poll(&set, 1, (int)((deadline - now) / 1000000 + 1)) : 0;
        if (rc > 0)
            return WEFT_OK;
        if (rc < 0 && errno != EINTR)
            return wire_failed(wire, what, strerror(errno));
        if (rc == 0 && weft_clock_ns() >= deadline)
            break;
    }
    wire->is_broken = true;
    return weft_fail(WEFT_E_TIMEOUT, "%s: no answer from the launcher's PMI server (%s) after %d s (WEFT_START_TIMEOUT_S)%s%s", what,
                     wire->where, weft_knob.start_timeout_s, hint ? ": " : "", hint ? hint : "");
}

static uint64_t deadline_ns(void)
{
    return weft_clock_ns() + (uint64_t)weft_knob.start_timeout_s * 1000000000u;
}

static int connection_lost(weft_pmi_wire *wire, const char *what, int error)
{
    wire->is_broken = true;
    return weft_fail(WEFT_E_OTHER,
                     "%s: the launcher's PMI server has closed the connection (%s%s%s). Has the launcher ended, or was another MPI "
                     "program run as this rank before? Each rank can be one MPI program",
                     what, wire->where, error ? ": " : "", error ? strerror(error) : "");
}

static int bytes_send(weft_pmi_wire *wire, const char *text, size_t bytes, const char *cmd)
{
    uint64_t deadline = deadline_ns();

    for (size_t sent = 0; sent < bytes;) {
        ssize_t some = send(wire->fd, text + sent, bytes - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (some >= 0) {
            sent += (size_t)some;
            continue;
        }
        if (errno == EPIPE || errno == ECONNRESET)
            return connection_lost(wire, cmd, errno);
        if (errno != EAGAIN && errno != EINTR)
            return wire_failed(wire, cmd, strerror(errno));
        int rc = socket_wait(wire, POLLOUT, deadline, cmd, NULL);
        if (rc)
            return rc;
    }
    return WEFT_OK;
}

/* Appends "name=value" and the field separator; PMI-2 doubles a ';' in the value. Returns the new length; `capacity`: it did not fit. */
static size_t field_write(char *text, size_t used, size_t capacity, const weft_pmi_field *field, int version)
{
    used += (size_t)snprintf(text + used, capacity - used, "%s=", field->name);
    for (const char *from = field->value; *from && used + 2 < capacity; from++) {
        text[used++] = *from;
        if (version == 2 && *from == ';')
            text[used++] = ';';
    }
    if (used + 2 < capacity)
        text[used++] = version == 2 ? ';' : ' ';
    else
        used = capacity;
    return used;
}

int weft_pmi_send(weft_pmi_wire *wire, const char *cmd, const weft_pmi_field *fields)
{
    char text[WEFT_PMI_SEND_MAX + 3], length[LENGTH_BYTES + 1];
    size_t front = wire->version == 2 ? LENGTH_BYTES : 0;

    if (wire->is_broken)
        return weft_fail(WEFT_E_OTHER, "%s: the connection to the launcher's PMI server (%s) has failed earlier", cmd, wire->where);
    size_t used = front + (size_t)snprintf(text + front, sizeof(text) - front, "cmd=%s%c", cmd, wire->version == 2 ? ';' : ' ');
    for (; fields->name && used < sizeof(text); fields++)
        used = field_write(text, used, sizeof(text), fields, wire->version);
    if (used >= sizeof(text))
        return weft_fail(WEFT_E_TOOLARGE, "%s: a message to the launcher's PMI server exceeds %d bytes", cmd, WEFT_PMI_SEND_MAX);
    if (wire->version == 2) {
        snprintf(length, sizeof(length), "%-*zu", LENGTH_BYTES, used - front);
        memcpy(text, length, LENGTH_BYTES);
    } else {
        text[used - 1] = '\n';
    }
    return bytes_send(wire, text, used, cmd);
}

/* Waits for more bytes and appends them to `input`. */
static int bytes_receive(weft_pmi_wire *wire, uint64_t deadline, const char *what, const char *hint)
{
    if (wire->input_bytes == wire->input_room) {
        size_t capacity = wire->input_room ? wire->input_room * 2 : 4096;
        char *more = realloc(wire->input, capacity);
        if (!more)
            return wire_failed(wire, what, "no memory for a message of the launcher's PMI server");
        wire->input = more;
        wire->input_room = capacity;
    }
    for (;;) {
        ssize_t some = recv(wire->fd, wire->input + wire->input_bytes, wire->input_room - wire->input_bytes, MSG_DONTWAIT);
        if (some > 0) {
            wire->input_bytes += (size_t)some;
            return WEFT_OK;
        }
        if (some == 0 || errno == ECONNRESET || errno == EPIPE)
            return connection_lost(wire, what, some ? errno : 0);
        if (errno != EAGAIN && errno != EINTR)
            return wire_failed(wire, what, strerror(errno));
        int rc = socket_wait(wire, POLLIN, deadline, what, hint);
        if (rc)
            return rc;
    }
}

/* Locates the next message in `input`: bytes to skip before it, its length, bytes to skip after it. 1: complete, 0: more bytes are
 * needed, -1: malformed. */
static int message_find(const weft_pmi_wire *wire, size_t *before, size_t *bytes, size_t *after)
{
    *before = *after = 0;
    if (wire->version != 2) {
        char *end = wire->input_bytes ? memchr(wire->input, '\n', wire->input_bytes) : NULL;
        *bytes = end ? (size_t)(end - wire->input) : 0;
        *after = 1;
        return end ? 1 : wire->input_bytes < MESSAGE_MAX ? 0 : -1;
    }
    if (wire->input_bytes < LENGTH_BYTES)
        return 0;
    size_t length = 0, at = 0;
    while (at < LENGTH_BYTES && wire->input[at] == ' ')
        at++;
    for (; at < LENGTH_BYTES && wire->input[at] >= '0' && wire->input[at] <= '9'; at++)
        length = length * 10 + (size_t)(wire->input[at] - '0');
    while (at < LENGTH_BYTES && wire->input[at] == ' ')
        at++;
    if (at < LENGTH_BYTES || length == 0)
        return -1;
    *before = LENGTH_BYTES;
    *bytes = length;
    return wire->input_bytes >= LENGTH_BYTES + length;
}

/* Moves one message from `input` to `answer`. */
static int message_dequeue(weft_pmi_wire *wire, size_t before, size_t bytes, size_t after, const char *what)
{
    if (wire->answer_room < bytes + 1) {
        char *more = realloc(wire->answer, bytes + 1);
        if (!more)
            return wire_failed(wire, what, "no memory for a message of the launcher's PMI server");
        wire->answer = more;
        wire->answer_room = bytes + 1;
    }
    memcpy(wire->answer, wire->input + before, bytes);
    wire->answer[bytes] = '\0';
    wire->input_bytes -= before + bytes + after;
    memmove(wire->input, wire->input + before + bytes + after, wire->input_bytes);
    return WEFT_OK;
}

int weft_pmi_recv(weft_pmi_wire *wire, const char *answer, const char *what, const char *hint)
{
    uint64_t deadline = deadline_ns();
    size_t before, bytes, after;
    char cmd[64];
    int seen;

    while ((seen = message_find(wire, &before, &bytes, &after)) == 0) {
        int rc = bytes_receive(wire, deadline, what, hint);
        if (rc)
            return rc;
    }
    if (seen < 0)
        return wire_failed(wire, what, wire->version == 2 ? "the launcher's PMI server has sent a message without PMI-2's length"
                                                          : "the launcher's PMI server has sent a line without an end");
    int rc = message_dequeue(wire, before, bytes, after, what);
    if (rc)
        return rc;
    if (weft_pmi_find(wire, "cmd", cmd, sizeof(cmd)) && !strcmp(cmd, answer))
        return WEFT_OK;
    wire->is_broken = true;
    return weft_pmi_unexpected(wire, what, answer);
}

/* Copies a value up to the end of its field. False: longer than capacity. */
static bool value_copy(const weft_pmi_wire *wire, const char *from, char *value, size_t capacity)
{
    size_t used = 0;

    for (; *from; from++) {
        if (wire->version == 2 ? *from == ';' && from[1] != ';' : *from == ' ')
            break;
        if (wire->version == 2 && *from == ';')
            from++;
        if (used + 1 >= capacity)
            return false;
        value[used++] = *from;
    }
    value[used] = '\0';
    return true;
}

bool weft_pmi_find(const weft_pmi_wire *wire, const char *name, char *value, size_t capacity)
{
    size_t length = strlen(name);
    const char *at = wire->answer;

    while (*at) {
        if (!strncmp(at, name, length) && at[length] == '=')
            return value_copy(wire, at + length + 1, value, capacity);
        if (wire->version == 2) {
            while (*at && !(at[0] == ';' && at[1] != ';'))
                at += at[0] == ';' ? 2 : 1;
            at += *at == ';';
        } else {
            at += strcspn(at, " ");
            at += strspn(at, " ");
        }
    }
    return false;
}

bool weft_pmi_find_number(const weft_pmi_wire *wire, const char *name, long min, long max, long *number)
{
    char text[32], *end;

    if (!weft_pmi_find(wire, name, text, sizeof(text)))
        return false;
    errno = 0;
    long found = strtol(text, &end, 10);
    if (end == text || *end || errno || found < min || found > max)
        return false;
    *number = found;
    return true;
}

int weft_pmi_unexpected(const weft_pmi_wire *wire, const char *what, const char *why)
{
    char shown[SHOWN_MAX + 1];
    size_t i = 0;

    for (; wire->answer[i] && i < SHOWN_MAX; i++)
        shown[i] = wire->answer[i] >= ' ' && wire->answer[i] <= '~' ? wire->answer[i] : '?';
    shown[i] = '\0';
    return weft_fail(WEFT_E_OTHER, "%s: the launcher's PMI server (%s) has sent \"%s\"%s, expected: %s", what, wire->where, shown,
                     wire->answer[i] ? " ..." : "", why);
}

void weft_pmi_wire_close(weft_pmi_wire *wire)
{
    if (wire->fd >= 0)
        close(wire->fd);
    wire->fd = -1;
    free(wire->input);
    free(wire->answer);
    wire->input = wire->answer = NULL;
}
