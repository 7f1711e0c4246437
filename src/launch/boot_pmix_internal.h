/* SPDX-License-Identifier: BSD-3-Clause
 *
 * boot_pmix_internal: shared by boot_pmix (client, keys), boot_pmix_job (rank, size, nodes) and boot_pmix_wait (deadlines).
 */
#ifndef WEFT_LAUNCH_BOOT_PMIX_INTERNAL_H
#define WEFT_LAUNCH_BOOT_PMIX_INTERNAL_H

#include <pmix.h>

#include "launch/boot.h"

/* Functions of libpmix, loaded at run time. */
typedef struct weft_pmix_calls {
    pmix_status_t (*init)(pmix_proc_t *, pmix_info_t *, size_t);
    pmix_status_t (*finalize)(const pmix_info_t *, size_t);
    pmix_status_t (*abort)(int, const char *, pmix_proc_t *, size_t);
    pmix_status_t (*put)(pmix_scope_t, const char *, pmix_value_t *);
    pmix_status_t (*commit)(void);
    pmix_status_t (*get)(const pmix_proc_t *, const char *, const pmix_info_t *, size_t, pmix_value_cbfunc_t, void *);
    pmix_status_t (*fence)(const pmix_proc_t *, size_t, const pmix_info_t *, size_t, pmix_op_cbfunc_t, void *);
    const char *(*error_string)(pmix_status_t);
    pmix_status_t (*register_handler)(pmix_status_t *, size_t, pmix_info_t *, size_t, pmix_notification_fn_t, pmix_hdlr_reg_cbfunc_t,
                                      void *);
    pmix_status_t (*resolve_nodes)(const pmix_nspace_t, char **);
    pmix_status_t (*resolve_peers)(const char *, const pmix_nspace_t, pmix_proc_t **, size_t *);
} weft_pmix_calls;

struct weft_segment_fd;

typedef struct weft_pmix_client {
    weft_boot boot;
    weft_pmix_calls pmix;
    pmix_proc_t me;
    uint32_t *node_of, *local_of;
    uint32_t *locals; /* [local_size]: world ranks of this node, ascending */
    uint64_t locals_hash; /* of that list; must be equal on all ranks of the node */
    const struct weft_segment_fd *_Atomic offer; /* set while serving the segment: on_server_lost() unlinks its socket; NULL: none */
    unsigned char *modex_ready; /* [size]: 1: the rank has committed all keys; NULL: no key was read yet */
    bool has_parted; /* PMIx_Finalize was called */
} weft_pmix_client;

/* Reads rank, size, nodes and node-local ranks from the server. WEFT_E_OTHER: missing or contradictory answers. */
int weft_pmix_job_read(weft_pmix_client *self);
/* The end of a step that begins now: WEFT_START_TIMEOUT_S and 2 s later, by weft_clock_ns(). */
uint64_t weft_pmix_deadline(void);
/* Gets a value of `rank` (PMIX_RANK_WILDCARD: of the job). Blocks until the owner has put it, or until then (PMIX_ERR_TIMEOUT). */
pmix_status_t weft_pmix_value_get(weft_pmix_client *self, uint32_t rank, const char *key, uint64_t until_ns, pmix_value_t **value);
void weft_pmix_value_free(pmix_value_t *value);
/* The same for a string shorter than `capacity`. False: none. */
bool weft_pmix_text_get(weft_pmix_client *self, uint32_t rank, const char *key, char *text, size_t capacity);
/* Barrier of all ranks, with the same deadline. */
pmix_status_t weft_pmix_fence(weft_pmix_client *self);

#endif
