/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmi: commands of PMI-1 and PMI-2, and the checks of their replies.
 */
#include "launch/pmi.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/knob.h"
#include "base/log.h"
#include "base/status.h"

#define RANKS_MAX 100000000
#define VALUE_MIN 16 /* least acceptable value length, characters: each fragment of an address costs a round trip */
#define KEY_MAX_2 63  /* PMI-2 has no command to query these */
#define VALUE_MAX_2 1023
#define FIELDS(...) ((const weft_pmi_field[]){__VA_ARGS__, {NULL, NULL}})
#define RANKS_HINT "have all ranks called MPI_Init, and has none ended?"

static const weft_pmi_field no_fields[] = {{NULL, NULL}};

static bool is_connection(int fd)
{
    int type = 0, listens = 1;
    socklen_t bytes = sizeof(type);

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 && type == SOCK_STREAM &&
           getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) == 0 && !listens;
}

/* Reads a variable as a number in [min, max]. */
static bool number_of(const char *name, long min, long max, long *number)
{
    const char *text = getenv(name);
    char *end;

    if (!text || !*text)
        return false;
    *number = strtol(text, &end, 10);
    return !*end && *number >= min && *number <= max;
}

static bool is_set(const char *name)
{
    const char *text = getenv(name);

    return text && *text;
}

enum weft_pmi_env weft_pmi_env_read(void)
{
    long fd;

    if (is_set("PMI_FD") && is_set("PMI_RANK") && is_set("PMI_SIZE"))
        return number_of("PMI_FD", 0, INT32_MAX, &fd) && is_connection((int)fd) ? WEFT_PMI_ENV_OPEN : WEFT_PMI_ENV_NAMED;
    return is_set("PMI_PORT") && is_set("PMI_ID") ? WEFT_PMI_ENV_NAMED : WEFT_PMI_ENV_NONE;
}

/* Sends a command and receives its reply, which must not have rc != 0. */
static int request(weft_pmi *self, const char *cmd, const weft_pmi_field *fields, const char *answer, const char *what, const char *hint)
{
    long code = 0;
    int rc = weft_pmi_send(&self->wire, cmd, fields);

    if (!rc)
        rc = weft_pmi_recv(&self->wire, answer, what, hint);
    if (!rc && weft_pmi_find_number(&self->wire, "rc", INT32_MIN, INT32_MAX, &code) && code)
        rc = weft_pmi_unexpected(&self->wire, what, "rc=0");
    return rc;
}

static int fd_read(weft_pmi *self)
{
    long fd, rank, size;

    if (!number_of("PMI_SIZE", 1, RANKS_MAX, &size) || !number_of("PMI_RANK", 0, size - 1, &rank))
        return weft_fail(WEFT_E_OTHER, "start-up: the launcher calls this process rank PMI_RANK=%s of PMI_SIZE=%s", getenv("PMI_RANK"),
                         getenv("PMI_SIZE"));
    self->rank = (uint32_t)rank;
    self->size = (uint32_t)size;
    snprintf(self->wire.where, sizeof(self->wire.where), "PMI_FD=%.40s", getenv("PMI_FD"));
    if (weft_pmi_env_read() != WEFT_PMI_ENV_OPEN)
        return weft_fail(WEFT_E_OTHER,
                         "this process is rank %ld of %ld (PMI_RANK, PMI_SIZE), but PMI_FD=%s is not a connection to the launcher: was it "
                         "closed by a wrapper (sudo, ssh, Python's subprocess), or is this a child of a rank? To run it alone, "
                         "unset PMI_FD, PMI_RANK and PMI_SIZE",
                         rank, size, getenv("PMI_FD"));
    number_of("PMI_FD", 0, INT32_MAX, &fd);
    self->wire.fd = (int)fd;
    fcntl(self->wire.fd, F_SETFD, FD_CLOEXEC); /* children of a rank must not use it */
    return WEFT_OK;
}

static int port_connect(weft_pmi *self)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    const char *colon = strrchr(getenv("PMI_PORT"), ':');
    struct timeval limit = {.tv_sec = weft_knob.start_timeout_s};
    char host[256];
    int error = 0;

    snprintf(self->wire.where, sizeof(self->wire.where), "PMI_PORT=%.80s", getenv("PMI_PORT"));
    if (!colon || colon - getenv("PMI_PORT") >= (long)sizeof(host))
        return weft_fail(WEFT_E_OTHER, "start-up: %s is not HOST:PORT of a launcher", self->wire.where);
    snprintf(host, sizeof(host), "%.*s", (int)(colon - getenv("PMI_PORT")), getenv("PMI_PORT"));
    int rc = getaddrinfo(host, colon + 1, &hints, &found);
    if (rc)
        return weft_fail(WEFT_E_OTHER, "start-up: the address of the launcher's PMI server (%s) cannot be resolved: %s",
                         self->wire.where, gai_strerror(rc));
    for (struct addrinfo *one = found; one && self->wire.fd < 0; one = one->ai_next) {
        int fd = socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol);
        if (fd >= 0)
            setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)); /* limits connect() too */
        if (fd >= 0 && connect(fd, one->ai_addr, one->ai_addrlen) == 0) {
            self->wire.fd = fd;
        } else {
            error = errno == EINPROGRESS ? ETIMEDOUT : errno;
            if (fd >= 0)
                close(fd);
        }
    }
    freeaddrinfo(found);
    return self->wire.fd >= 0 ? WEFT_OK : weft_fail(WEFT_E_SYSTEM, "start-up: the launcher's PMI server (%s) cannot be reached: %s",
                                                    self->wire.where, strerror(error));
}

/* After a connection by address: sends PMI_ID, receives size and rank. */
static int port_handshake(weft_pmi *self)
{
    long size = 0, rank = -1, number;
    int rc = request(self, "initack", FIELDS({"pmiid", getenv("PMI_ID")}), "initack", "start-up: PMI initack", NULL);

    for (int i = 0; !rc && i < 3; i++) {
        rc = weft_pmi_recv(&self->wire, "set", "start-up: PMI initack", NULL);
        if (!rc && weft_pmi_find_number(&self->wire, "size", 1, RANKS_MAX, &number))
            size = number;
        else if (!rc && weft_pmi_find_number(&self->wire, "rank", 0, RANKS_MAX, &number))
            rank = number;
    }
    if (rc)
        return rc;
    if (size < 1 || rank < 0 || rank >= size)
        return weft_fail(WEFT_E_OTHER, "start-up: the launcher (%s) calls this process rank %ld of %ld", self->wire.where, rank, size);
    self->rank = (uint32_t)rank;
    self->size = (uint32_t)size;
    return WEFT_OK;
}

/* Negotiates the version; `init` has the PMI-1 format in both. A server without PMI-2 may refuse it, or reply with version 1. */
static int version_negotiate(weft_pmi *self, int want)
{
    long version = 0, code = 0;
    weft_pmi_wire *wire = &self->wire;
    int rc = weft_pmi_send(wire, "init", FIELDS({"pmi_version", want == 2 ? "2" : "1"}, {"pmi_subversion", want == 2 ? "0" : "1"}));

    if (!rc)
        rc = weft_pmi_recv(wire, "response_to_init", "start-up: PMI init", NULL);
    if (rc)
        return rc;
    weft_pmi_find_number(wire, "rc", INT32_MIN, INT32_MAX, &code);
    bool is_known = weft_pmi_find_number(wire, "pmi_version", 1, 2, &version) && version <= want;
    if (code == 0 && is_known) {
        wire->version = (int)version;
        return WEFT_OK;
    }
    return want == 2 ? version_negotiate(self, 1) : weft_pmi_unexpected(wire, "start-up: PMI init", "PMI version 1.1 or 2.0");
}

static int job_read_1(weft_pmi *self)
{
    const weft_pmi_wire *wire = &self->wire;
    long number, key_room, value_room;
    int rc = request(self, "get_maxes", no_fields, "maxes", "start-up: PMI get_maxes", NULL);

    if (rc)
        return rc;
    if (!weft_pmi_find_number(wire, "keylen_max", 2, INT32_MAX, &key_room) ||
        !weft_pmi_find_number(wire, "vallen_max", VALUE_MIN, INT32_MAX, &value_room))
        return weft_pmi_unexpected(wire, "start-up: PMI get_maxes", "the maximum lengths of key and value (16 at least)");
    self->key_max = (size_t)key_room - 1;
    self->value_max = (size_t)value_room - 1;
    rc = request(self, "get_appnum", no_fields, "appnum", "start-up: PMI get_appnum", NULL);
    if (!rc && weft_pmi_find_number(wire, "appnum", 0, INT32_MAX, &number))
        self->app = (uint32_t)number;
    if (!rc)
        rc = request(self, "get_universe_size", no_fields, "universe_size", "start-up: PMI get_universe_size", NULL);
    if (!rc && weft_pmi_find_number(wire, "size", 1, INT32_MAX, &number))
        self->universe = (uint32_t)number;
    if (!rc)
        rc = request(self, "get_my_kvsname", no_fields, "my_kvsname", "start-up: PMI get_my_kvsname", NULL);
    if (rc)
        return rc;
    if (!weft_pmi_find(wire, "kvsname", self->name, sizeof(self->name)) || !*self->name)
        return weft_pmi_unexpected(wire, "start-up: PMI get_my_kvsname", "the name of the job's key-value space");
    return WEFT_OK;
}

static int job_read_2(weft_pmi *self)
{
    const weft_pmi_wire *wire = &self->wire;
    long number, rank, size;
    char text[64], me[16];

    self->key_max = KEY_MAX_2;
    self->value_max = VALUE_MAX_2;
    snprintf(me, sizeof(me), "%u", self->rank);
    const char *job = is_set("PMI_JOBID") ? getenv("PMI_JOBID") : "";
    int rc = request(self, "fullinit", FIELDS({"pmijobid", job}, {"pmirank", me}, {"threaded", "FALSE"}), "fullinit-response",
                 "start-up: PMI fullinit", NULL);
    if (rc)
        return rc;
    if (!weft_pmi_find_number(wire, "rank", self->rank, self->rank, &rank) ||
        !weft_pmi_find_number(wire, "size", self->size, self->size, &size)) {
        snprintf(text, sizeof(text), "rank=%u;size=%u (PMI_RANK, PMI_SIZE)", self->rank, self->size);
        return weft_pmi_unexpected(wire, "start-up: PMI fullinit", text);
    }
    if (weft_pmi_find_number(wire, "appnum", 0, INT32_MAX, &number))
        self->app = (uint32_t)number;
    rc = request(self, "job-getid", no_fields, "job-getid-response", "start-up: PMI job-getid", NULL);
    if (rc)
        return rc;
    if (!weft_pmi_find(wire, "jobid", self->name, sizeof(self->name)) || !*self->name)
        return weft_pmi_unexpected(wire, "start-up: PMI job-getid", "the job's name");
    rc = weft_pmi_job_get(self, "universeSize", text, sizeof(text));
    if (!rc && atol(text) > 0)
        self->universe = (uint32_t)atol(text);
    return rc == WEFT_E_UNSUPPORTED ? WEFT_OK : rc;
}

int weft_pmi_open(weft_pmi *self)
{
    bool by_port = !is_set("PMI_FD");
    int rc;

    memset(self, 0, sizeof(*self));
    self->wire.fd = -1;
    self->wire.version = 1;
    rc = by_port ? port_connect(self) : fd_read(self);
    if (!rc && by_port)
        rc = port_handshake(self);
    if (!rc) /* PMI_JOBID: set by Slurm and Cray, not by PMI-1 launchers */
        rc = version_negotiate(self, !by_port && is_set("PMI_JOBID") ? 2 : 1);
    if (!rc)
        rc = self->wire.version == 2 ? job_read_2(self) : job_read_1(self);
    return rc;
}

int weft_pmi_put(weft_pmi *self, const char *key, const char *value)
{
    if (strlen(key) > self->key_max || strlen(value) > self->value_max)
        return weft_fail(WEFT_E_TOOLARGE,
                         "PMI put: key %s has %zu characters (limit of the launcher: %zu), its value %zu (limit: %zu)", key,
                         strlen(key), self->key_max, strlen(value), self->value_max);
    if (self->wire.version == 2)
        return request(self, "kvs-put", FIELDS({"key", key}, {"value", value}), "kvs-put-response", "PMI kvs-put", NULL);
    return request(self, "put", FIELDS({"kvsname", self->name}, {"key", key}, {"value", value}), "put_result", "PMI put", NULL);
}

static int value_copy(weft_pmi *self, const char *what, char *value, size_t capacity)
{
    return weft_pmi_find(&self->wire, "value", value, capacity) ? WEFT_OK : weft_pmi_unexpected(&self->wire, what, "a value that fits");
}

static int get_1(weft_pmi *self, const char *key, char *value, size_t capacity)
{
    long code;
    int rc = weft_pmi_send(&self->wire, "get", FIELDS({"kvsname", self->name}, {"key", key}));

    if (!rc)
        rc = weft_pmi_recv(&self->wire, "get_result", "PMI get", NULL);
    if (rc)
        return rc;
    if (!weft_pmi_find_number(&self->wire, "rc", INT32_MIN, INT32_MAX, &code))
        return weft_pmi_unexpected(&self->wire, "PMI get", "rc=0 or an error");
    return code ? weft_fail(WEFT_E_UNSUPPORTED, "the launcher's PMI server has no key %s", key)
                : value_copy(self, "PMI get", value, capacity);
}

static int get_2(weft_pmi *self, const char *cmd, const weft_pmi_field *fields, const char *key, char *value, size_t capacity)
{
    char answer[64], what[64], found[16];

    snprintf(answer, sizeof(answer), "%s-response", cmd);
    snprintf(what, sizeof(what), "PMI %s", cmd);
    int rc = request(self, cmd, fields, answer, what, NULL);
    if (rc)
        return rc;
    if (!weft_pmi_find(&self->wire, "found", found, sizeof(found)))
        return weft_pmi_unexpected(&self->wire, what, "found=TRUE or FALSE");
    return strcmp(found, "TRUE") ? weft_fail(WEFT_E_UNSUPPORTED, "the launcher's PMI server has no key %s", key)
                                 : value_copy(self, what, value, capacity);
}

int weft_pmi_get(weft_pmi *self, const char *key, char *value, size_t capacity)
{
    if (self->wire.version != 2)
        return get_1(self, key, value, capacity);
    return get_2(self, "kvs-get", FIELDS({"jobid", self->name}, {"srcid", "-1"}, {"key", key}), key, value, capacity);
}

int weft_pmi_job_get(weft_pmi *self, const char *key, char *value, size_t capacity)
{
    if (self->wire.version != 2)
        return get_1(self, key, value, capacity);
    return get_2(self, "info-getjobattr", FIELDS({"key", key}), key, value, capacity);
}

int weft_pmi_fence(weft_pmi *self)
{
    if (self->wire.version == 2)
        return request(self, "kvs-fence", no_fields, "kvs-fence-response", "PMI kvs-fence", RANKS_HINT);
    return request(self, "barrier_in", no_fields, "barrier_out", "PMI barrier", RANKS_HINT);
}

void weft_pmi_abort(weft_pmi *self, int code, const char *text)
{
    weft_pmi_wire wire = self->wire; /* a copy: another thread may be waiting for a reply; abort needs none */
    char number[16], safe[200];
    size_t i = 0;

    wire.is_broken = false;
    for (; text && text[i] && i < sizeof(safe) - 1; i++)
        safe[i] = text[i] >= ' ' && text[i] <= '~' && text[i] != ';' ? text[i] : ' ';
    safe[i] = '\0';
    snprintf(number, sizeof(number), "%d", code);
    if (wire.version == 2)
        weft_pmi_send(&wire, "abort", FIELDS({"isworld", "TRUE"}, {"msg", safe}));
    else
        weft_pmi_send(&wire, "abort", FIELDS({"exitcode", number}));
}

void weft_pmi_close(weft_pmi *self, bool is_orderly)
{
    int rc = 0;

    if (is_orderly && self->wire.version == 2)
        rc = request(self, "finalize", no_fields, "finalize-response", "PMI finalize", NULL);
    else if (is_orderly)
        rc = request(self, "finalize", no_fields, "finalize_ack", "PMI finalize", NULL);
    if (rc)
        weft_log_warn("%s", weft_fail_text(rc));
    weft_pmi_wire_close(&self->wire);
}
