/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_wait_report: what mpirun's report says of ranks whose network waits for something of their machine.
 */
#include <CUnit/Basic.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/mpirun/report.h"
#include "tools/mpirun/wait_report.h"

#define RANKS 2u

const char *const weft_call_names[] = {NULL, "MPI_Recv"};
const uint32_t weft_call_names_count = 2;

static char printed[2000];

int report(int code, const char *format, ...)
{
    size_t used = strlen(printed);
    va_list words;
    va_start(words, format);
    vsnprintf(printed + used, sizeof printed - used, format, words);
    va_end(words);
    strncat(printed, "\n", sizeof printed - strlen(printed) - 1);
    return code;
}

static options opts;
static node_rank ranks[RANKS];
static node self = {.opts = &opts, .ranks = ranks, .count = RANKS, .started = RANKS};
static weft_call_record *records[RANKS];

/* Both ranks wait in MPI_Recv for a message from the other one. */
static void set_up(void)
{
    CU_ASSERT_FATAL(weft_segment_make(RANKS, 1, 0, &self.segment) == 0);
    for (uint32_t i = 0; i < RANKS; i++) {
        weft_rank_page *page = weft_segment_rank(&self.segment, i);
        void *at;
        ranks[i].rank = i;
        CU_ASSERT_FATAL(weft_segment_view(&self.segment, self.segment.hdr->calls + i * WEFT_CALL_BYTES, WEFT_CALL_BYTES, &at) == 0);
        records[i] = at;
        *records[i] = (weft_call_record){.count = (1u << WEFT_CALL_DEPTH_BITS) + 1, .call = 1, .thread = (uint32_t)getpid()};
        page->call_records = 1;
        page->state = WEFT_RANK_INIT;
        page->status.peer = (int32_t)(1 - i);
        page->status.tag = 42;
        page->status.why = WEFT_WAIT_REASON_RECV;
        page->status.since_ns = weft_clock_ns() - 1000000000u;
    }
}

static void tear_down(void)
{
    for (uint32_t i = 0; i < RANKS; i++)
        weft_segment_drop(records[i], WEFT_CALL_BYTES);
    weft_segment_close(&self.segment);
}

/* Prints the report into `printed`. */
static void print(void)
{
    wait_report *all = NULL;
    printed[0] = 0;
    wait_report_print(&all, &self);
    wait_report_close(all);
}

static void network_waits(void)
{
    static const char clause[] = "the connection to rank 1 waits for a queue pair: 3 are open";
    weft_rank_page *page;
    set_up();
    page = weft_segment_rank(&self.segment, 0);
    print();
    CU_ASSERT(strstr(printed, "rank 0: in MPI_Recv since 1.0 s, waits for a message from rank 1, tag 42\n") != NULL);
    strcpy(page->iface_wait, clause);
    page->iface_waits = 1;
    print();
    CU_ASSERT(strstr(printed, "from rank 1, tag 42; the connection to rank 1 waits for a queue pair: 3 are open\n") != NULL);
    CU_ASSERT(strstr(printed, "waits for a message from rank 0, tag 42\n") != NULL);
    page->status.since_ns = 0; /* in MPI, and does not wait */
    print();
    CU_ASSERT(strstr(printed, clause) == NULL);
    page->status.since_ns = 1;
    records[0]->count--; /* not in MPI */
    print();
    CU_ASSERT(strstr(printed, clause) == NULL);
    tear_down();
}

/* A page that was written by chance: nothing but printable letters leaves mpirun, and the report ends. */
static void damaged_page(void)
{
    weft_rank_page *page;
    set_up();
    page = weft_segment_rank(&self.segment, 0);
    memset(page->iface_wait, 'x', sizeof page->iface_wait);
    memcpy(page->iface_wait, "%n%s\033[2J\n", 9);
    page->iface_waits = 77;
    print();
    CU_ASSERT(strstr(printed, "tag 42; ?n?s?[2J?xxx") != NULL);
    CU_ASSERT(strstr(printed, "waits for a message from rank 0, tag 42\n") != NULL);
    tear_down();
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("wait report", NULL, NULL);
    CU_add_test(suite, "network waits", network_waits);
    CU_add_test(suite, "damaged page", damaged_page);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}
