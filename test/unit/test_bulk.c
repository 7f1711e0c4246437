/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_bulk: limits and growth of the eps' shares; chunks of an ep that was closed, returned by its reader just while the owner searches
 * for one. A replaced fallocate, called by the owner between its searches, sets the moment.
 */
#include <CUnit/Basic.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/status.h"
#include "transports/shm/bulk.h"

static weft_bulk *returning; /* all of its chunks are returned, and there is no new memory */

int fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    if (!returning)
        return (int)syscall(SYS_fallocate, fd, mode, offset, bytes);
    for (uint32_t i = 0; i < WEFT_BULK_COUNT; i++)
        weft_bulk_free(returning, i);
    errno = ENOSPC;
    return -1;
}

int fallocate64(int fd, int mode, off64_t offset, off64_t bytes) { return fallocate(fd, mode, offset, bytes); }

static void a_chunk_of_a_closed_ep(void)
{
    weft_segment segment;
    weft_bulk_owner owner;
    weft_bulk_share gone = {.count = 0}, other = {.count = 0};
    uint32_t index;
    int rc;
    CU_ASSERT_EQUAL_FATAL(weft_segment_make(2, 1, 0, &segment), 0);
    CU_ASSERT_EQUAL_FATAL(weft_bulk_open(&segment, 0, false, &owner), 0);
    for (int i = 0; i < WEFT_BULK_STEP; i++)
        CU_ASSERT_EQUAL(weft_bulk_alloc(&owner, &gone, &index), 0);
    weft_bulk_leave(&owner, &gone);
    returning = owner.bulk;
    rc = weft_bulk_alloc(&owner, &other, &index);
    CU_ASSERT(rc == WEFT_AGAIN || rc == 0);
    CU_ASSERT_EQUAL(weft_bulk_alloc(&owner, &other, &index), 0); /* now they are certainly returned */
    returning = NULL;
    weft_bulk_close(&owner);
    weft_segment_close(&segment);
}

/* Allocates until the ep gets no more. */
static uint32_t take_all(weft_bulk_owner *owner, weft_bulk_share *share)
{
    uint32_t index, n = 0;
    while (weft_bulk_alloc(owner, share, &index) == 0)
        n++;
    return n;
}

#define EPS 6

/* Readers that free nothing: the first eps leave the reserve, and every ep gets its sure chunks while there are any. */
static void shares_are_limited(void)
{
    weft_segment segment;
    weft_bulk_owner owner;
    weft_bulk_share eps[EPS] = {{.count = 0}};
    CU_ASSERT_EQUAL_FATAL(weft_segment_make(2, 1, 0, &segment), 0);
    CU_ASSERT_EQUAL_FATAL(weft_bulk_open(&segment, 0, false, &owner), 0);
    CU_ASSERT_EQUAL(take_all(&owner, &eps[0]), WEFT_BULK_SHARE);
    CU_ASSERT_EQUAL(take_all(&owner, &eps[1]), WEFT_BULK_SHARE);
    CU_ASSERT_EQUAL(take_all(&owner, &eps[2]), WEFT_BULK_SHARE_SURE);
    CU_ASSERT_EQUAL(take_all(&owner, &eps[3]), WEFT_BULK_SHARE_SURE);
    CU_ASSERT_EQUAL(take_all(&owner, &eps[4]), WEFT_BULK_COUNT - 2 * WEFT_BULK_SHARE - 2 * WEFT_BULK_SHARE_SURE);
    CU_ASSERT_EQUAL(take_all(&owner, &eps[5]), 0);
    CU_ASSERT_EQUAL(owner.held, WEFT_BULK_COUNT);
    for (uint32_t i = 0; i < WEFT_BULK_COUNT; i++)
        weft_bulk_free(owner.bulk, i);
    CU_ASSERT_EQUAL(take_all(&owner, &eps[5]), WEFT_BULK_SHARE_SURE); /* of the others */
    CU_ASSERT_EQUAL(owner.held, WEFT_BULK_COUNT);
    for (int i = 0; i < EPS; i++)
        weft_bulk_leave(&owner, &eps[i]);
    CU_ASSERT_EQUAL(owner.held, 0);
    weft_bulk_close(&owner);
    weft_segment_close(&segment);
}

/* A reader that frees each chunk at once: a round of few chunks is used many times before it grows, until it is of SHARE_USUAL. */
static void rounds_grow_with_the_data(void)
{
    weft_segment segment;
    weft_bulk_owner owner;
    weft_bulk_share share = {.count = 0};
    uint32_t index, sent = 0;
    CU_ASSERT_EQUAL_FATAL(weft_segment_make(2, 1, 0, &segment), 0);
    CU_ASSERT_EQUAL_FATAL(weft_bulk_open(&segment, 0, false, &owner), 0);
    for (uint32_t round = 0; round < 6 * WEFT_BULK_ROUNDS; round++) {
        bool is_used[WEFT_BULK_COUNT] = {false};
        for (uint32_t i = 0, n = share.count ? share.count : WEFT_BULK_STEP; i < n; i++, sent++) {
            CU_ASSERT_EQUAL_FATAL(weft_bulk_alloc(&owner, &share, &index), 0);
            CU_ASSERT_FALSE_FATAL(is_used[index]);
            is_used[index] = true;
            weft_bulk_free(owner.bulk, index);
        }
        CU_ASSERT(share.count <= WEFT_BULK_STEP || sent >= (share.count - (uint32_t)WEFT_BULK_STEP) * WEFT_BULK_ROUNDS);
    }
    CU_ASSERT_EQUAL(share.count, WEFT_BULK_SHARE_USUAL);
    CU_ASSERT_EQUAL(owner.held, WEFT_BULK_SHARE_USUAL);
    weft_bulk_leave(&owner, &share);
    weft_bulk_close(&owner);
    weft_segment_close(&segment);
}

/* As above, where ranks share CPUs: one chunk, until a reader leaves several unread. */
static void sparing_rounds_are_short(void)
{
    weft_segment segment;
    weft_bulk_owner owner;
    weft_bulk_share share = {.count = 0};
    uint32_t index, unread[5];
    CU_ASSERT_EQUAL_FATAL(weft_segment_make(2, 1, 0, &segment), 0);
    CU_ASSERT_EQUAL_FATAL(weft_bulk_open(&segment, 0, true, &owner), 0);
    for (uint32_t i = 0; i < 6 * WEFT_BULK_ROUNDS * WEFT_BULK_STEP; i++) {
        CU_ASSERT_EQUAL_FATAL(weft_bulk_alloc(&owner, &share, &index), 0);
        weft_bulk_free(owner.bulk, index);
    }
    CU_ASSERT_EQUAL(share.count, 1);
    for (int i = 0; i < 5; i++)
        CU_ASSERT_EQUAL_FATAL(weft_bulk_alloc(&owner, &share, &unread[i]), 0);
    for (int i = 0; i < 5; i++)
        weft_bulk_free(owner.bulk, unread[i]);
    CU_ASSERT_EQUAL(share.count, 5);
    weft_bulk_leave(&owner, &share);
    weft_bulk_close(&owner);
    weft_segment_close(&segment);
}

int main(void)
{
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("bulk", NULL, NULL);
    CU_add_test(suite, "a chunk of a closed ep is returned during a search", a_chunk_of_a_closed_ep);
    CU_add_test(suite, "rounds grow with the data", rounds_grow_with_the_data);
    CU_add_test(suite, "shares are limited", shares_are_limited);
    CU_add_test(suite, "sparing rounds are short", sparing_rounds_are_short);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    return CU_get_number_of_failures() ? 1 : 0;
}
