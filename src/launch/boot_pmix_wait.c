/* SPDX-License-Identifier: BSD-3-Clause
 *
 * boot_pmix_wait: gets and fences of libpmix with a deadline of their own. PMIX_TIMEOUT is not enough: Slurm's plugin answers no get whose
 * owner's node has left the job, and libpmix then waits forever.
 * Threads: libpmix's own calls on_value() and on_end().
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/knob.h"
#include "launch/boot_pmix_internal.h"

#define GRACE_S 2 /* the server's own answer to PMIX_TIMEOUT comes first */

/* One call of libpmix that does not block. Freed by the later of both sides: libpmix may answer after the deadline. */
typedef struct answer {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    struct timespec until; /* CLOCK_MONOTONIC */
    bool is_done, is_abandoned;
    pmix_status_t status;
    pmix_value_t *value; /* get: a copy; NULL: none */
    pmix_proc_t proc;    /* these must live until libpmix has answered */
    char key[PMIX_MAX_KEYLEN + 1];
    pmix_info_t info[2];
} answer;

uint64_t weft_pmix_deadline(void) { return weft_clock_ns() + (uint64_t)(weft_knob.start_timeout_s + GRACE_S) * 1000000000u; }

/* What is left for the server, in full seconds; 0 would mean no limit. */
static int server_limit_s(uint64_t until_ns)
{
    uint64_t now_ns = weft_clock_ns() + (uint64_t)GRACE_S * 1000000000u;
    return now_ns < until_ns ? (int)((until_ns - now_ns + 999999999u) / 1000000000u) : 1;
}

static answer *answer_new(uint64_t until_ns)
{
    answer *self = calloc(1, sizeof(*self));
    pthread_condattr_t attributes;

    if (!self)
        return NULL;
    pthread_mutex_init(&self->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); /* the time of day may be set while a node boots */
    pthread_cond_init(&self->ended, &attributes);
    pthread_condattr_destroy(&attributes);
    snprintf(self->info[0].key, sizeof(self->info[0].key), "%s", PMIX_TIMEOUT);
    self->info[0].value.type = PMIX_INT;
    self->info[0].value.data.integer = server_limit_s(until_ns);
    self->until = (struct timespec){.tv_sec = (time_t)(until_ns / 1000000000u), .tv_nsec = (long)(until_ns % 1000000000u)};
    return self;
}

static void answer_free(answer *self)
{
    if (self->value)
        weft_pmix_value_free(self->value);
    pthread_cond_destroy(&self->ended);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

static void answer_end(answer *self, pmix_status_t status)
{
    pthread_mutex_lock(&self->lock);
    bool is_abandoned = self->is_abandoned;
    self->is_done = true;
    self->status = status;
    pthread_cond_signal(&self->ended);
    pthread_mutex_unlock(&self->lock);
    if (is_abandoned)
        answer_free(self);
}

/* Waits for the answer to a call that returned `status`, and moves its value to *value. */
static pmix_status_t answer_wait(answer *self, pmix_status_t status, pmix_value_t **value)
{
    int rc = 0;

    if (status != PMIX_SUCCESS) { /* libpmix does not call back */
        answer_free(self);
        return status == PMIX_OPERATION_SUCCEEDED && !value ? PMIX_SUCCESS : status;
    }
    pthread_mutex_lock(&self->lock);
    while (!self->is_done && rc == 0)
        rc = pthread_cond_timedwait(&self->ended, &self->lock, &self->until);
    bool is_done = self->is_done;
    self->is_abandoned = !is_done;
    pthread_mutex_unlock(&self->lock);
    if (!is_done)
        return PMIX_ERR_TIMEOUT;
    status = self->status;
    if (value) {
        *value = self->value;
        self->value = NULL;
        if (status == PMIX_SUCCESS && !*value)
            status = PMIX_ERR_NOMEM;
    }
    answer_free(self);
    return status;
}

static pmix_value_t *value_copy(const pmix_value_t *value)
{
    pmix_value_t *copy = malloc(sizeof(*copy));

    if (!copy)
        return NULL;
    *copy = *value;
    if (value->type == PMIX_STRING) {
        copy->data.string = value->data.string ? strdup(value->data.string) : NULL;
    } else if (value->type == PMIX_BYTE_OBJECT) {
        copy->data.bo.bytes = malloc(value->data.bo.size + 1);
        if (copy->data.bo.bytes && value->data.bo.size)
            memcpy(copy->data.bo.bytes, value->data.bo.bytes, value->data.bo.size);
    }
    if ((value->type == PMIX_STRING && value->data.string && !copy->data.string) ||
        (value->type == PMIX_BYTE_OBJECT && !copy->data.bo.bytes)) {
        free(copy);
        return NULL;
    }
    return copy;
}

static void on_value(pmix_status_t status, pmix_value_t *value, void *data)
{
    answer *self = data;

    if (status == PMIX_SUCCESS && value)
        self->value = value_copy(value);
    answer_end(self, status);
}

static void on_end(pmix_status_t status, void *data) { answer_end(data, status); }

void weft_pmix_value_free(pmix_value_t *value)
{
    if (value->type == PMIX_STRING)
        free(value->data.string);
    else if (value->type == PMIX_BYTE_OBJECT)
        free(value->data.bo.bytes);
    free(value);
}

pmix_status_t weft_pmix_value_get(weft_pmix_client *self, uint32_t rank, const char *key, uint64_t until_ns, pmix_value_t **value)
{
    answer *answer = answer_new(until_ns);

    *value = NULL;
    if (!answer)
        return PMIX_ERR_NOMEM;
    answer->proc.rank = rank;
    memcpy(answer->proc.nspace, self->me.nspace, sizeof(answer->proc.nspace));
    snprintf(answer->key, sizeof(answer->key), "%s", key);
    return answer_wait(answer, self->pmix.get(&answer->proc, answer->key, answer->info, 1, on_value, answer), value);
}

pmix_status_t weft_pmix_fence(weft_pmix_client *self)
{
    answer *answer = answer_new(weft_pmix_deadline());

    if (!answer)
        return PMIX_ERR_NOMEM;
    snprintf(answer->info[1].key, sizeof(answer->info[1].key), "%s", PMIX_COLLECT_DATA); /* Slurm's plugin skips fences without data */
    answer->info[1].value.type = PMIX_BOOL;
    answer->info[1].value.data.flag = true;
    return answer_wait(answer, self->pmix.fence(NULL, 0, answer->info, 2, on_end, answer), NULL);
}
