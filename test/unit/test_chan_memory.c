/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_chan_memory: channels over large groups use memory for the members that were contacted, not for all: 10^6 members, of a range and of
 * a list, many channels over one group, and the peers of a worker.
 */
#include <CUnit/Basic.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/status.h"
#include "core/world.h"
#include "p2p/chan.h"
#include "p2p/dispatch.h"

#define MEMBERS 1000000u
#define CHANNELS 1000

static weft_worker *worker;

static size_t used(void)
{
    struct mallinfo2 now = mallinfo2();
    return now.uordblks + now.hblkhd;
}

/* Pages of the channel's array of peers that use memory. */
static size_t resident_pages(const weft_chan *chan)
{
    static unsigned char pages[MEMBERS * sizeof(void *) / 4096 + 1];
    size_t bytes = chan->size * sizeof *chan->peers, count = 0;
    CU_ASSERT_FATAL(mincore(chan->peers, bytes, pages) == 0);
    for (size_t i = 0; i < (bytes + 4095) / 4096; i++)
        count += pages[i] & 1;
    return count;
}

static void open_over(weft_group *group, size_t first_bytes)
{
    static weft_chan *chans[CHANNELS];
    size_t before = used(), first, all;
    for (int i = 0; i < CHANNELS; i++) {
        CU_ASSERT_FATAL(weft_chan_open(worker, group, 0, -1, &chans[i]) == 0);
        weft_chan_connect_same(chans[i], chans[i]->id);
        CU_ASSERT(chans[i]->peers == chans[0]->peers && chans[i]->size == MEMBERS);
        if (i == 0)
            first = used() - before;
    }
    all = used() - before;
    printf("first %zu bytes, each of %d %zu ... ", first, CHANNELS, all / CHANNELS);
    CU_ASSERT(first <= first_bytes && all / CHANNELS <= 1024);
    CU_ASSERT(resident_pages(chans[0]) == 0);
    CU_ASSERT(chans[7]->peers[MEMBERS / 2] == NULL && chans[7]->peers[0] == NULL);
    chans[7]->peers[MEMBERS / 2] = (weft_peer *)chans; /* as resolving does */
    CU_ASSERT(chans[8]->peers[MEMBERS / 2] != NULL && resident_pages(chans[0]) <= 2);
    chans[7]->peers[MEMBERS / 2] = NULL;
    for (int i = 0; i < CHANNELS; i++)
        weft_chan_close(chans[i]);
}

static void range_of_a_million(void)
{
    weft_group *group;
    CU_ASSERT_FATAL(weft_group_range(worker->world->boot->job, 0, 1, MEMBERS, &group) == 0);
    open_over(group, 4096);
    weft_group_drop(group);
}

/* The list itself is 4 bytes for each member; its channels add nothing. */
static void list_of_a_million(void)
{
    uint32_t *ranks = malloc(MEMBERS * sizeof *ranks);
    weft_group *group;
    for (uint32_t i = 0; i < MEMBERS; i++)
        ranks[i] = i ^ (i >> 3 & 1); /* no runs */
    CU_ASSERT_FATAL(weft_group_list(worker->world->boot->job, ranks, MEMBERS, &group) == 0 && group->run_count == 0);
    CU_ASSERT(weft_group_bytes(group) == MEMBERS * sizeof *ranks);
    open_over(group, 4096);
    weft_group_drop(group);
    free(ranks);
}

static void peers_are_found_by_process(void)
{
    const weft_boot *boot = worker->world->boot;
    weft_process self = {boot->job, boot->rank}, other = {boot->job + 1, boot->rank};
    weft_peer *peer = NULL;
    uint32_t count = worker->peer_count;
    CU_ASSERT(weft_peer_known(worker, other) == NULL);
    CU_ASSERT_FATAL(weft_peer_find(worker, self, &peer) == 0 && peer == weft_peer_known(worker, self));
    CU_ASSERT(worker->peer_count == 1 && count <= 1);
    CU_ASSERT(weft_peer_find(worker, other, &peer) == WEFT_E_PEER);
    CU_ASSERT_STRING_EQUAL(weft_fail_text(WEFT_E_PEER), "rank 0 is of another job, to which there is no connection");
    CU_ASSERT(worker->peer_count == 1);
}

int main(void)
{
    CU_pSuite suite;
    unsigned failed;
    weft_boot *boot;
    weft_world *world;
    if (weft_boot_start(&boot) || weft_p2p_open(boot, 0, &world) || CU_initialize_registry() != CUE_SUCCESS)
        return 99;
    worker = world->workers[0];
    suite = CU_add_suite("chan_memory", NULL, NULL);
    CU_add_test(suite, "range-of-a-million", range_of_a_million);
    CU_add_test(suite, "list-of-a-million", list_of_a_million);
    CU_add_test(suite, "peers-are-found-by-process", peers_are_found_by_process);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    weft_world_close(world);
    return failed ? 1 : 0;
}
