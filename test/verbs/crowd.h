/* SPDX-License-Identifier: BSD-3-Clause
 *
 * crowd: a few verbs ifaces in one process, for test/verbs/conn.c. crowd.c has the ifaces; crowd_sim.c or crowd_real.c the devices.
 */
#ifndef WEFT_TEST_VERBS_CROWD_H
#define WEFT_TEST_VERBS_CROWD_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "transports/verbs/verbs.h"

#define CROWD_MAX 12   /* processes that all speak with each other */
#define CROWD_ROOM 449 /* processes at most */

typedef struct crowd_node {
    struct crowd *crowd;
    weft_iface *iface;
    weft_proc_id proc_id;
    weft_ep *eps[CROWD_ROOM];
    uint32_t sent[CROWD_ROOM], wanted[CROWD_ROOM]; /* frames to each: passed to the iface; to be sent in all */
    uint32_t heard[CROWD_ROOM];                    /* frames from each */
    uint32_t losts;
    char why[512];
    bool is_dead;
} crowd_node;

typedef struct crowd {
    crowd_node nodes[CROWD_ROOM];
    uint32_t count;
    const char *profile;
    uint64_t seed, random;
    bool is_real;
    bool has_hub; /* node 0 speaks with all: it is polled as often as all others, since polls without work let virtual time pass */
    uint32_t failures;
} crowd;

#define EXPECT(c, what, sentence) crowd_expect(c, what, sentence, __LINE__)
void crowd_expect(crowd *c, bool ok, const char *sentence, int line);
void crowd_init(crowd *c, const char *profile, uint64_t seed);
void crowd_open(crowd *c, uint32_t count);
void crowd_close(crowd *c); /* closes all eps first */
void crowd_reach(crowd *c, uint32_t from, uint32_t to);
void crowd_talk(crowd *c, uint32_t from, uint32_t to, uint32_t more);
int crowd_try(crowd *c, uint32_t from, uint32_t to); /* one send, not counted */
bool crowd_has(const crowd *c, uint32_t from, uint32_t to, uint32_t frames);
void crowd_turn(crowd *c);
void crowd_until_quiet(crowd *c); /* until all wanted frames have arrived; fails after a minute */
void crowd_break(crowd *c, uint32_t node);
void crowd_show(const crowd *c); /* prints the state of every ep */
void crowd_leave(crowd *c, uint32_t node, uint32_t other);
verbs_ep *crowd_path(crowd *c, uint32_t node, uint32_t other);
uint64_t crowd_count(const crowd *c, uint32_t node, enum verbs_print_counters which);
uint64_t crowd_random(crowd *c);

/* crowd_sim.c, crowd_real.c */
extern const bool crowd_is_real;
bool crowd_is_absent(void);
void crowd_devices_open(crowd *c);
void crowd_devices_close(crowd *c);
void crowd_device_of(crowd *c, uint32_t node); /* the iface opened next belongs to this node */
uint64_t (*crowd_clock(void))(void);
uint64_t crowd_now(const crowd *c);
void crowd_kill(crowd *c, uint32_t node);
void crowd_silence(crowd *c, bool is_on); /* node 0's first rail loses all packets without an event */
void crowd_fatal(crowd *c); /* node 0's first device fails for good; skipped if not possible */
void crowd_deafen(crowd *c, bool is_on); /* node 0's first rail loses rdma_cm messages; simulated only */
void crowd_link(crowd *c, uint32_t rail, bool is_up); /* of node 0 */

#endif
