/* SPDX-License-Identifier: BSD-3-Clause
 *
 * decoy: a library of the name of libpsm2 (or libpsm, with DECOY_PSM) that has no adapter and takes no time to load; see front.c. These are
 * all functions of theirs that libfabric 1.17 is linked to. Built by transports/ofi/rooms.mk, never linked to anything.
 */
#define NONE 3 /* an error in both of their lists */
#define FAILS(name) int name(void); int name(void) { return NONE; }

#ifdef DECOY_PSM
#define WORDS psm_error_get_string
#define CONTEXT psm_epaddr_getctxt
#define ALL \
    FAILS(psm_am_get_parameters) FAILS(psm_am_register_handlers) FAILS(psm_am_reply_short) FAILS(psm_am_request_short) \
    FAILS(psm_ep_close) FAILS(psm_ep_connect) FAILS(psm_ep_epid_lookup) FAILS(psm_ep_num_devunits) FAILS(psm_ep_open) \
    FAILS(psm_ep_open_opts_get_defaults) FAILS(psm_epaddr_setctxt) FAILS(psm_error_register_handler) FAILS(psm_finalize) \
    FAILS(psm_init) FAILS(psm_mq_cancel) FAILS(psm_mq_finalize) FAILS(psm_mq_init) FAILS(psm_mq_ipeek) FAILS(psm_mq_iprobe) \
    FAILS(psm_mq_irecv) FAILS(psm_mq_isend) FAILS(psm_mq_send) FAILS(psm_mq_test)
#else
#define WORDS psm2_error_get_string
#define CONTEXT psm2_epaddr_getctxt
#define ALL \
    FAILS(psm2_am_get_parameters) FAILS(psm2_am_get_source) FAILS(psm2_am_register_handlers_2) FAILS(psm2_am_reply_short) \
    FAILS(psm2_am_request_short) FAILS(psm2_ep_close) FAILS(psm2_ep_connect) FAILS(psm2_ep_disconnect2) \
    FAILS(psm2_ep_epid_lookup2) FAILS(psm2_ep_open) FAILS(psm2_ep_open_opts_get_defaults) FAILS(psm2_epaddr_setctxt) \
    FAILS(psm2_epaddr_to_epid) FAILS(psm2_error_register_handler) FAILS(psm2_finalize) FAILS(psm2_info_query) FAILS(psm2_init) \
    FAILS(psm2_mq_cancel) FAILS(psm2_mq_improbe2) FAILS(psm2_mq_imrecv) FAILS(psm2_mq_init) FAILS(psm2_mq_ipeek) \
    FAILS(psm2_mq_iprobe2) FAILS(psm2_mq_irecv2) FAILS(psm2_mq_isend2) FAILS(psm2_mq_send2) FAILS(psm2_mq_test2) \
    FAILS(psm2_mq_wait2) FAILS(psm2_poll)
unsigned psm2_get_capability_mask(unsigned wanted);
unsigned psm2_get_capability_mask(unsigned wanted) { return wanted & 0; }
#endif

ALL

const char *WORDS(int error);
const char *WORDS(int error) { return error ? "no adapter is here" : "success"; }

void *CONTEXT(void *address);
void *CONTEXT(void *address) { return address ? (void *)0 : (void *)0; }
