/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_mock: a libpmix with the job data of Slurm 22.05's plugin: the host of each rank, node numbers only of ranks on this node.
 * test/launch/pmix_places builds it and uses it in place of the real one; MOCK_HOSTS has the hosts, "n0 n0 n1", one for each rank.
 * MOCK_KNOWS_ALL: node numbers of all ranks. MOCK_RESOLVES: PMIx_Resolve_nodes and _peers are supported. MOCK_PEERS, MOCK_LOCAL_SIZE,
 * MOCK_LOCAL_RANK: values that replace the right ones. MOCK_COUNTS: prints the number of requests at the end. Values that are put are
 * dropped.
 * MOCK_MUTE=get, fence, abort: a get of what ranks put or a fence is not answered, PMIx_Abort does not return; late: the first get of a
 * rank's mark is answered by PMIx_Finalize; value: that get is answered after 1.2 s, the next one is not, and its PMIX_TIMEOUT is printed.
 * MOCK_CLOCK, if the library is also preloaded: the time of day is an hour ahead where it is
 * read.
 */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define RANKS_MAX 512

static unsigned me, size, questions;
static char hosts[RANKS_MAX][32];
static pmix_value_cbfunc_t late_done;
static void *late_data;

static bool is_mute(const char *what) { return getenv("MOCK_MUTE") && !strcmp(getenv("MOCK_MUTE"), what); }

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, now);

    if (clock == CLOCK_REALTIME && getenv("MOCK_CLOCK"))
        now->tv_sec += 3600;
    return rc;
}


pmix_status_t PMIx_Init(pmix_proc_t *proc, pmix_info_t info[], size_t count)
{
    const char *text = getenv("MOCK_HOSTS");
    int used = 0;

    (void)info, (void)count;
    me = (unsigned)atoi(getenv("PMIX_RANK"));
    while (size < RANKS_MAX && sscanf(text, "%31s%n", hosts[size], &used) == 1) {
        text += used;
        size++;
    }
    memset(proc, 0, sizeof(*proc));
    snprintf(proc->nspace, sizeof(proc->nspace), "mock");
    proc->rank = me;
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Finalize(const pmix_info_t info[], size_t count)
{
    (void)info, (void)count;
    if (late_done) {
        late_done(PMIX_ERR_NOT_FOUND, NULL, late_data);
        printf("mock: answered late\n");
    }
    if (getenv("MOCK_COUNTS"))
        printf("mock: %s questions\n", questions < size ? "few" : "many");
    return PMIX_SUCCESS;
}
pmix_status_t PMIx_Register_event_handler(pmix_status_t codes[], size_t count, pmix_info_t info[], size_t infos,
                                          pmix_notification_fn_t call,
                                          pmix_hdlr_reg_cbfunc_t done, void *data)
{
    (void)codes, (void)count, (void)info, (void)infos, (void)call;
    done(PMIX_SUCCESS, 1, data);
    return PMIX_SUCCESS;
}
pmix_status_t PMIx_Put(pmix_scope_t scope, const char key[], pmix_value_t *value)
{
    (void)scope, (void)key, (void)value;
    return PMIX_SUCCESS;
}
pmix_status_t PMIx_Commit(void) { return PMIX_SUCCESS; }
pmix_status_t PMIx_Fence_nb(const pmix_proc_t procs[], size_t count, const pmix_info_t info[], size_t infos, pmix_op_cbfunc_t done,
                            void *data)
{
    (void)procs, (void)count, (void)info, (void)infos;
    if (!is_mute("fence"))
        done(PMIX_SUCCESS, data);
    return PMIX_SUCCESS;
}
const char *PMIx_Error_string(pmix_status_t status) { return status == PMIX_ERR_NOT_FOUND ? "NOT-FOUND" : "mock"; }
pmix_status_t PMIx_Abort(int code, const char text[], pmix_proc_t procs[], size_t count)
{
    (void)text, (void)procs, (void)count;
    while (is_mute("abort"))
        pause();
    exit(code);
}

/* How many ranks before `end` stand beside `rank`. */
static unsigned beside(unsigned rank, unsigned end)
{
    unsigned count = 0;

    for (unsigned r = 0; r < end; r++)
        count += !strcmp(hosts[r], hosts[rank]);
    return count;
}

pmix_status_t PMIx_Resolve_nodes(const pmix_nspace_t nspace, char **list)
{
    (void)nspace;
    questions++;
    if (!getenv("MOCK_RESOLVES"))
        return PMIX_ERR_NOT_SUPPORTED;
    *list = calloc(size + 1, sizeof(*hosts));
    for (unsigned r = 0; r < size; r++)
        if (!beside(r, r))
            sprintf(*list + strlen(*list), "%s%s", r ? "," : "", hosts[r]);
    return PMIX_SUCCESS;
}
pmix_status_t PMIx_Resolve_peers(const char *node, const pmix_nspace_t nspace, pmix_proc_t **procs, size_t *count)
{
    questions++;
    *procs = calloc(size, sizeof(**procs));
    for (unsigned r = size; r-- > 0;)
        if (!strcmp(hosts[r], node)) {
            snprintf((*procs)[*count].nspace, sizeof((*procs)->nspace), "%s", nspace);
            (*procs)[(*count)++].rank = r;
        }
    return PMIX_SUCCESS;
}

static void peers_fill(pmix_value_t *value)
{
    char text[4096] = "";

    if (getenv("MOCK_PEERS"))
        snprintf(text, sizeof(text), "%s", getenv("MOCK_PEERS"));
    else
        for (unsigned r = 0; r < size; r++)
            if (!strcmp(hosts[r], hosts[me]))
                snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u", *text ? "," : "", r);
    value->type = PMIX_STRING;
    value->data.string = strdup(text);
}

pmix_status_t PMIx_Get_nb(const pmix_proc_t *proc, const char key[], const pmix_info_t info[], size_t count, pmix_value_cbfunc_t done,
                          void *data)
{
    pmix_value_t value[1] = {0};
    bool is_rank = proc->rank < size, is_near = is_rank && (getenv("MOCK_KNOWS_ALL") || !strcmp(hosts[proc->rank], hosts[me]));

    (void)count;
    questions++;
    value->type = PMIX_UINT32;
    if (!strcmp(key, PMIX_LOCAL_SIZE) && getenv("MOCK_LOCAL_SIZE")) {
        value->data.uint32 = (unsigned)atoi(getenv("MOCK_LOCAL_SIZE"));
    } else if (!strcmp(key, PMIX_JOB_SIZE)) {
        value->data.uint32 = size;
    } else if (!strcmp(key, PMIX_LOCAL_PEERS)) {
        peers_fill(value);
    } else if (!strcmp(key, PMIX_HOSTNAME) && is_rank) {
        value->type = PMIX_STRING;
        value->data.string = strdup(hosts[proc->rank]);
    } else if (!strcmp(key, PMIX_NODEID) && is_near) {
        value->data.uint32 = (unsigned)atoi(hosts[proc->rank] + 1);
    } else if (!strcmp(key, PMIX_LOCAL_RANK) && is_near) {
        value->type = PMIX_UINT16;
        value->data.uint16 = (uint16_t)(getenv("MOCK_LOCAL_RANK") ? atoi(getenv("MOCK_LOCAL_RANK")) : (int)beside(proc->rank, proc->rank));
    } else if (is_mute("late") && !late_done && strstr(key, "told")) {
        late_done = done;
        late_data = data;
        return PMIX_SUCCESS;
    } else if (is_mute("value") && strstr(key, "told")) {
        usleep(1200000);
        value->type = PMIX_BYTE_OBJECT;
        value->data.bo = (pmix_byte_object_t){.bytes = strdup(""), .size = 1};
    } else if (is_mute("value") && strstr(key, "probe")) {
        printf("mock: %s is asked for within %d s\n", key, info->value.data.integer);
        return PMIX_SUCCESS;
    } else {
        if (!is_mute("get") || !strncmp(key, "pmix.", 5))
            done(PMIX_ERR_NOT_FOUND, NULL, data);
        return PMIX_SUCCESS;
    }
    done(PMIX_SUCCESS, value, data);
    if (value->type == PMIX_STRING)
        free(value->data.string);
    else if (value->type == PMIX_BYTE_OBJECT)
        free(value->data.bo.bytes);
    return PMIX_SUCCESS;
}
