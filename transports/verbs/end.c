/* SPDX-License-Identifier: BSD-3-Clause
 *
 * end: how the epoch of a path ends: broken by an error, by what the peer says, or in peace; and what comes after its drain: the next
 * epoch, a rest, or the loss of the peer. Called by conn.c and by whoever sees an error. Only a turn tells of losses.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/log.h"
#include "base/status.h"
#include "transports/verbs/conn.h"
#include "transports/verbs/gid.h"

#define SICK_BREAKS_LEAST 4
#define REST_NS (4 * VERBS_MS)
#define STOOD_LONG_NS (10 * VERBS_SECOND)

/* -- breaking -- */

/* Trouble lasts from the first attempt or break after which nothing got through. A connection that stood for long was no
 * trouble, nor is an end that had no error: an idle path may end and begin often, as rails come and go. */
static void count_break(verbs_path *path, bool is_trouble)
{
    verbs_meet *meet = path->meet;
    uint64_t now = verbs_conn_now(path);
    bool stood_long = path->state == VERBS_UP && now - meet->up_ns > verbs_conn_timeout_ns() && now - meet->up_ns > STOOD_LONG_NS;
    if (path->tx_acked != meet->sick_tx || path->rx_seq != meet->sick_rx || path->alive != meet->sick_alive || stood_long) {
        meet->sick_ns = now;
        meet->sick_breaks = 0;
    }
    meet->sick_alive = path->alive;
    meet->sick_tx = path->tx_acked;
    meet->sick_rx = path->rx_seq;
    if (is_trouble)
        meet->sick_breaks++;
    else if (!meet->sick_breaks)
        meet->sick_ns = now;
    path->breaks++;
    path->port->counts[VERBS_COUNT_BREAKS]++;
}

/* A refusal comes from somebody: the peer is there. */
static bool is_answer(const struct ibv_wc *wc)
{
    return wc && (wc->status == IBV_WC_REM_ACCESS_ERR || wc->status == IBV_WC_REM_INV_REQ_ERR || wc->status == IBV_WC_REM_OP_ERR ||
                  wc->status == IBV_WC_RNR_RETRY_EXC_ERR);
}

void verbs_conn_break(verbs_link *link, const struct ibv_wc *wc, const char *words)
{
    verbs_path *path = link->path;
    bool is_first = path->state == VERBS_UP || path->state == VERBS_CONNECTING;
    bool is_echo = wc && wc->status == IBV_WC_WR_FLUSH_ERR; /* of an error that was, or will be, told by itself */
    if (!is_first && path->state != VERBS_DRAINING)
        return;
    if (is_answer(wc))
        path->silent_since_ns = 0;
    if (wc && (is_first || !is_echo)) {
        verbs_explain(link, wc, words ? words : "a transfer", path->last_error, sizeof path->last_error);
        verbs_probe_suspect(link, wc);
    } else if (words && is_first && words != path->last_error) {
        snprintf(path->last_error, sizeof path->last_error, "%s", words);
    }
    if (!is_first)
        return;
    path->rest = VERBS_AWAKE; /* RESTED may be lost with the epoch: the peer, too, must hear of a new one */
    count_break(path, !path->meet->is_peaceful);
    weft_log_debug("connection %u with rank %u ends: %s", path->epoch, path->name.rank, path->last_error);
    verbs_conn_set_state(path, VERBS_DRAINING);
    verbs_drain_begin(path);
    verbs_conn_due(path, verbs_conn_now(path));
}

void verbs_conn_renew(verbs_link *link, const char *words)
{
    link->path->meet->is_peaceful = true;
    verbs_conn_break(link, NULL, words);
    link->path->meet->is_peaceful = false;
}

void verbs_conn_last_wqe(verbs_link *link)
{
    verbs_half_of(link)->has_last_wqe = true;
    if (link->path->state == VERBS_DRAINING)
        verbs_conn_due(link->path, verbs_conn_now(link->path));
}

void verbs_conn_completion(verbs_rail *rail, const struct ibv_wc *wc)
{
    verbs_work *work = (verbs_work *)(uintptr_t)wc->wr_id;
    if (work->kind != VERBS_WORK_MARK) {
        verbs_datagram_completion(rail, wc);
        return;
    }
    weft_container(work, verbs_half, mark)->is_flushed = true;
    rail->marks--;
    verbs_conn_due(work->link->path, verbs_conn_now(work->link->path));
}

void verbs_conn_doom(verbs_path *path, const char *words)
{
    if (!path->meet->doom)
        path->meet->doom = words;
    verbs_conn_break(&path->links[0], NULL, words);
}

/* -- the end -- */

void verbs_conn_lose(verbs_path *path, const char *format, ...)
{
    char why[400], here[VERBS_GID_TEXT], there[VERBS_GID_TEXT];
    const verbs_link *link = &path->links[path->try_rail];
    va_list words;
    va_start(words, format);
    vsnprintf(why, sizeof why, format, words);
    va_end(words);
    verbs_conn_close_links(path);
    verbs_conn_set_state(path, VERBS_LOST);
    verbs_flow_give_up(path);
    weft_fail(WEFT_E_PEER, "rank %u is lost over %s (%s to %s): %s", path->name.rank, link->rail->name,
              verbs_gid_text(&link->rail->gid, here), verbs_gid_text(&path->far.address[link->far_rail].gid, there), why);
    verbs_move_give_up(path, WEFT_E_PEER);
    path->port->port.up->lost(path->port->port.owner, path->path.peer, WEFT_E_PEER);
}

bool verbs_conn_is_settled(verbs_path *path) { return verbs_flow_is_quiet(path) && !path->ops_open; }

/* The queue pairs are gone: what next? */
void verbs_conn_after_drain(verbs_path *path, uint64_t now)
{
    verbs_meet *meet = path->meet;
    uint32_t epoch = path->epoch + 1;
    uint64_t pause = 0;
    if (meet->is_leaving && (verbs_conn_is_settled(path) || meet->far_is_gone)) {
        verbs_conn_set_state(path, VERBS_LOST);
        meet->is_over = true;
        return;
    }
    if (meet->far_is_gone) {
        verbs_conn_gone(path);
        return;
    }
    if (meet->doom) {
        verbs_conn_lose(path, "%s", meet->doom);
        return;
    }
    if (path->rest == VERBS_AGREES && !meet->is_leaving && (int32_t)(meet->far_epoch - epoch) < 0) {
        verbs_conn_hurry(path->port);
        if (verbs_conn_is_settled(path) && !path->is_starved) {
            path->rest = VERBS_AWAKE;
            verbs_conn_set_state(path, VERBS_NEW);
            return;
        }
        pause = REST_NS; /* those for whom it closed come first */
    }
    if (meet->sick_breaks >= SICK_BREAKS_LEAST && now - meet->sick_ns > verbs_conn_timeout_ns()) {
        verbs_conn_lose(path, "tried to connect %u times in %u s, nothing got through. The last time: %s", meet->sick_breaks,
             (unsigned)((now - meet->sick_ns) / VERBS_SECOND), path->last_error);
        return;
    }
    if ((int32_t)(meet->far_epoch - epoch) >= 0)
        epoch = meet->far_epoch;
    else if (meet->sick_breaks > 1 && !pause)
        pause = VERBS_MS << (meet->sick_breaks < 8 ? meet->sick_breaks : 8);
    verbs_conn_begin_epoch(path, epoch, pause < VERBS_TRY_MOST_NS ? pause : VERBS_TRY_MOST_NS);
}

/* The peer has left in peace: it has had all that we sent, and all that it sent has arrived or stands in our queues. The owner
 * finds its BYE there and leaves, too. */
void verbs_conn_gone(verbs_path *path)
{
    verbs_meet *meet = path->meet;
    meet->far_is_gone = true;
    if (path->state == VERBS_CONNECTING) {
        verbs_conn_break(&path->links[0], NULL, "the peer has left");
    } else if (path->state == VERBS_DRAINING && !verbs_conn_has_links(path)) {
        verbs_conn_set_state(path, VERBS_LOST);
        meet->is_over = true;
        verbs_flow_give_up(path);
        verbs_move_give_up(path, WEFT_E_PEER);
    }
}

void verbs_conn_end(verbs_path *path)
{
    verbs_conn_set_state(path, VERBS_DRAINING);
    verbs_drain_begin(path);
    verbs_conn_due(path, verbs_conn_now(path));
}

void verbs_conn_farewell(verbs_path *path)
{
    if (!path->meet->far_is_gone)
        verbs_conn_say(path, VERBS_NOTE_GONE);
}

void verbs_conn_part(verbs_path *path)
{
    verbs_conn_farewell(path);
    verbs_conn_end(path);
}
