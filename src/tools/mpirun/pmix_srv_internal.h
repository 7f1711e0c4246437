/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_srv_internal: internal declarations of the PMIx server: pmix_srv (start and end), pmix_nspace (job data), pmix_upcalls (requests of
 * clients), pmix_downcalls (messages of the head).
 * libpmix makes its upcalls on its own thread. Data shared with that thread are protected by pmix_srv.lock.
 */
#ifndef WEFT_MPIRUN_PMIX_INNER_H
#define WEFT_MPIRUN_PMIX_INNER_H

#include <pmix.h>
#include <pmix_server.h>
#include <pthread.h>

#include "tools/mpirun/id_table.h"
#include "tools/mpirun/pmix_srv.h"

typedef struct pmix_calls {
    pmix_status_t (*init)(pmix_server_module_t *, pmix_info_t *, size_t);
    pmix_status_t (*finalize)(void);
    pmix_status_t (*register_nspace)(const pmix_nspace_t, int, pmix_info_t *, size_t, pmix_op_cbfunc_t, void *);
    pmix_status_t (*register_client)(const pmix_proc_t *, uid_t, gid_t, void *, pmix_op_cbfunc_t, void *);
    void (*deregister_client)(const pmix_proc_t *, pmix_op_cbfunc_t, void *);
    pmix_status_t (*setup_fork)(const pmix_proc_t *, char ***);
    pmix_status_t (*dmodex_request)(const pmix_proc_t *, pmix_dmodex_response_fn_t, void *);
    pmix_status_t (*notify_event)(pmix_status_t, const pmix_proc_t *, pmix_data_range_t, const pmix_info_t *, size_t, pmix_op_cbfunc_t,
                                  void *);
    pmix_status_t (*data_pack)(const pmix_proc_t *, pmix_data_buffer_t *, void *, int32_t, pmix_data_type_t);
    pmix_status_t (*data_unpack)(const pmix_proc_t *, pmix_data_buffer_t *, void *, int32_t *, pmix_data_type_t);
    pmix_status_t (*data_load)(pmix_data_buffer_t *, pmix_byte_object_t *);
    pmix_status_t (*generate_regex)(const char *, char **);
    pmix_status_t (*generate_ppn)(const char *, char **);
    const char *(*error_string)(pmix_status_t);
} pmix_calls;

struct pmix_out; /* queue entry: a message for the head */
struct pmix_dmodex; /* a PMIX_MSG_DMODEX_REQ that libpmix has not answered */

struct pmix_srv {
    void *library;
    pmix_calls pmix;
    pmix_nspace_t job;
    const char *host; /* name of this node, the same on all nodes */
    const map *map;
    uint32_t node, ranks;
    char dir[200];
    bool is_up;
    int wake[2];
    pthread_mutex_t lock; /* protects the members below, which libpmix's thread also uses */
    bool has_aborted;
    int abort_rank, abort_code;
    char abort_text[256];
    char message[256];       /* message for the user, printed by the loop; "": none */
    bool has_reported_spawn;
    struct pmix_out *out, **out_end;
    size_t out_events; /* bytes of the events in out */
    id_table requests; /* by ticket: pmix_request, requests that wait for the head */
    struct pmix_dmodex *dmodexes;
    unsigned char *rank_bits;     /* [ranks]: bits of enum pmix_rank_bits */
};

#define PMIX_RELAYED "weft.relayed" /* attribute of an event that came from another node's server */

enum pmix_rank_bits {
    PMIX_RANK_IS_CONNECTED = 1, /* it has called PMIx_Init and not PMIx_Finalize */
    PMIX_RANK_HAS_ENDED = 2,
};

/* The only server of this process: libpmix's module functions get no user pointer. */
extern pmix_srv *pmix_srv_current;
extern pmix_server_module_t pmix_module;

/* Waits for one asynchronous libpmix call: begin, call with pmix_call_ended as callback, wait. */
typedef struct pmix_call {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool is_done;
    pmix_status_t status;
} pmix_call;
void pmix_call_begin(pmix_call *call);
void pmix_call_ended(pmix_status_t status, void *data);
pmix_status_t pmix_call_wait(pmix_call *call, pmix_status_t status);
int pmix_srv_failed(const pmix_srv *self, const char *step, pmix_status_t status);

/* Registers the nspace, with its map, at libpmix. 0, or an exit code after a message. */
int pmix_nspace_register(pmix_srv *self, const options *opts);

/* Queues a message for the head and wakes the loop; takes over the body. 0 or -1: out of memory. Any thread. */
int pmix_srv_send(pmix_srv *self, const pmix_msg *what);
/* Stores a line that the loop prints; dropped if one is pending. Any thread. */
void pmix_srv_message(pmix_srv *self, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Runs `then` on libpmix's thread, after the calls passed to libpmix before. */
void pmix_srv_defer(pmix_srv *self, pmix_op_cbfunc_t then, void *data);

/* After the server's end: frees the open DMODEX_REQs. */
void pmix_downcalls_close(pmix_srv *self);

/* A client's request that waits for the head: the callback of libpmix, and the reply. */
enum pmix_request_kind { PMIX_REQUEST_MODEX, PMIX_REQUEST_OP, PMIX_REQUEST_LOOKUP };
typedef struct pmix_request {
    enum pmix_request_kind kind;
    union {
        pmix_modex_cbfunc_t modex;
        pmix_op_cbfunc_t op;
        pmix_lookup_cbfunc_t lookup;
    } ended;
    void *data;
    pmix_msg done;
} pmix_request;

#endif
