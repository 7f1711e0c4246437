/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pins: one registration cache per port. See pins.h.
 */
#include "core/pins.h"

#include <stdlib.h>

#include "base/knob.h"
#include "base/log.h"
#include "base/status.h"
#include "core/world.h"

struct weft_kept {
    uint64_t bytes;
    weft_pin *pins[WEFT_LANE_PORTS];
};

static int map(void *owner, void *addr, uint64_t bytes, uint32_t rights, void *record)
{
    weft_port *port = owner;
    return port->ops->map(port, addr, bytes, rights, WEFT_MEMORY_HOST, record);
}

static void unmap(void *owner, void *record)
{
    weft_port *port = owner;
    port->ops->unmap(port, record);
}

/* In the simulator a registration is an address range of one process: it cannot go stale, and a helper would not be deterministic. */
static bool is_simulated(const weft_port *port) { return ((weft_lane *)port->owner)->world->boot->rest != NULL; }

/* To register costs a line in a table, which names addresses and not pages: nothing is gained by waiting, by parts, or by watching. */
static bool is_free(const weft_port *port) { return !port->caps.pins; }

static weft_regcache *cache_of(weft_port *port)
{
    weft_regcache_config config = {.map = map, .unmap = unmap, .owner = port, .record_bytes = sizeof(weft_region),
                                   .most_bytes = weft_knob.pin_max, .most_regions = (uint32_t)weft_knob.pin_regions,
                                   .port_bytes = port->caps.pin_bytes, .port_regions = port->caps.pin_regions,
                                   .pages_on_demand = port->caps.pages_on_demand,
                                   .needs_no_watch = (is_simulated(port) || is_free(port)) && weft_knob.pin_watch != WEFT_WATCH_NONE};
    if (!port->pins && weft_regcache_open(&config, (weft_regcache **)&port->pins))
        port->pins = NULL;
    return port->pins;
}

/* Where memory is lent, peers have no right to the registration itself. */
static uint32_t rights_of(const weft_port *port, uint32_t rights) { return rights && port->caps.lends ? WEFT_RIGHT_LEND : rights; }

bool weft_pins_lend(weft_port *port, weft_path *path, const weft_pin *pin, void *addr, uint64_t bytes, uint32_t rights, weft_key *key,
                    weft_loan **loan)
{
    *loan = NULL;
    if (port->caps.lends)
        return path->port == port && port->ops->lend(port, path, weft_pins_region(pin), addr, bytes, rights, key, loan) == 0;
    *key = weft_pins_region(pin)->key;
    return true;
}

bool weft_pins_allowed(weft_port *port)
{
    return weft_knob.pin != WEFT_PIN_NEVER && cache_of(port);
}

static weft_pin *hold(weft_port *port, const void *addr, uint64_t bytes, uint32_t rights)
{
    weft_pin *pin = NULL;
    return weft_pins_hold(port, addr, bytes, rights, &pin) ? NULL : pin;
}

weft_pin *weft_pins_look(weft_port *port, const void *addr, uint64_t bytes, uint32_t rights)
{
    weft_regcache *cache = cache_of(port);
    if (is_free(port))
        return hold(port, addr, bytes, rights);
    return cache ? weft_regcache_look(cache, addr, bytes, rights_of(port, rights)) : NULL;
}

weft_pin *weft_pins_look_posted(weft_port *port, uint64_t order, const void *addr, uint64_t bytes, uint32_t rights)
{
    weft_regcache *cache = cache_of(port);
    weft_lane *lane = port->owner;
    bool was_asked = order < lane->asked_order, is_asked = was_asked;
    weft_pin *pin = is_free(port) ? hold(port, addr, bytes, rights)
                    : cache       ? weft_regcache_look_asked(cache, addr, bytes, rights_of(port, rights), &is_asked)
                                  : NULL;
    if (is_asked && !was_asked)
        lane->asked_order = lane->post_order; /* the answer is good for all that was posted until now */
    return pin;
}

int weft_pins_hold(weft_port *port, const void *addr, uint64_t bytes, uint32_t rights, weft_pin **pin)
{
    weft_regcache *cache = cache_of(port);
    return cache ? weft_regcache_hold(cache, addr, bytes, rights_of(port, rights), pin)
                 : weft_fail(WEFT_E_NOSPACE, "no memory for a registration cache");
}

void weft_pins_drop(weft_port *port, weft_pin *pin)
{
    if (pin)
        weft_regcache_drop(port->pins, pin);
}

void weft_pins_soon(weft_port *port, const void *addr, uint64_t bytes, uint32_t rights)
{
    weft_regcache *cache = cache_of(port);
    const weft_rest *rest = ((weft_lane *)port->owner)->world->rest;
    weft_pin *pin = NULL;
    if (!cache || is_free(port)) /* nothing to be gained, and map is for the lane's thread only */
        return;
    rights = rights_of(port, rights);
    if (!rest->aside) {
        weft_regcache_ahead(cache, addr, bytes, rights);
        return;
    }
    rest->aside(true); /* a helper would be another thread: here what it does is done at once */
    if (!weft_regcache_hold(cache, addr, bytes, rights, &pin))
        weft_regcache_drop(cache, pin);
    rest->aside(false);
}

void weft_pins_tidy(weft_lane *lane)
{
    for (uint32_t i = 0; i < lane->port_count; i++)
        if (lane->ports[i]->pins)
            weft_regcache_tidy(lane->ports[i]->pins);
}

void weft_pins_close(weft_port *port)
{
    if (port->pins)
        weft_regcache_close(port->pins);
    port->pins = NULL;
}

weft_kept *weft_pins_keep(weft_lane *lane, const void *addr, uint64_t bytes, uint32_t rights)
{
    weft_kept *kept = NULL;
    bool any = false;
    for (uint32_t i = 0; i < lane->port_count; i++)
        any |= weft_pins_needed(lane->ports[i]) && !is_free(lane->ports[i]) && weft_pins_allowed(lane->ports[i]);
    if (!any || !bytes || lane->kept_bytes + bytes > WEFT_PINS_KEPT || !(kept = calloc(1, sizeof *kept)))
        return NULL;
    kept->bytes = bytes;
    lane->kept_bytes += bytes;
    any = false;
    for (uint32_t i = 0; i < lane->port_count; i++) {
        weft_port *port = lane->ports[i];
        if (!weft_pins_needed(port) || is_free(port) || !weft_pins_allowed(port))
            continue;
        /* half of the cache stays free for what is not kept */
        if (lane->kept_bytes <= weft_regcache_most_bytes(port->pins) / 2)
            any |= weft_regcache_hold(port->pins, addr, bytes, rights_of(port, rights), &kept->pins[i]) == 0;
    }
    if (any)
        return kept;
    weft_pins_release(lane, kept);
    return NULL;
}

void weft_pins_release(weft_lane *lane, weft_kept *kept)
{
    if (!kept)
        return;
    for (uint32_t i = 0; i < lane->port_count; i++)
        weft_pins_drop(lane->ports[i], kept->pins[i]);
    lane->kept_bytes -= kept->bytes;
    free(kept);
}

void weft_pins_count(weft_lane *lane)
{
    static const enum weft_counter first = WEFT_COUNT_PIN_HITS;
    for (int i = 0; first + i <= WEFT_COUNT_PINNED_MOST; i++)
        lane->counters[first + i] = 0;
    for (uint32_t i = 0; i < lane->port_count; i++) {
        weft_regcache_counts counts;
        if (!lane->ports[i]->pins)
            continue;
        counts = weft_regcache_look_at(lane->ports[i]->pins);
        lane->counters[WEFT_COUNT_PIN_HITS] += counts.hits;
        lane->counters[WEFT_COUNT_PIN_ASKS] += counts.asks;
        lane->counters[WEFT_COUNT_PIN_MISSES] += counts.misses;
        lane->counters[WEFT_COUNT_PIN_EVICTIONS] += counts.evictions;
        lane->counters[WEFT_COUNT_PIN_INVALIDATIONS] += counts.invalidations;
        lane->counters[WEFT_COUNT_PIN_UNCACHED] += counts.uncached;
        lane->counters[WEFT_COUNT_PIN_REFUSED] += counts.refused;
        lane->counters[WEFT_COUNT_PIN_AHEAD] += counts.ahead;
        lane->counters[WEFT_COUNT_PIN_TIME] += counts.pin_ns;
        lane->counters[WEFT_COUNT_PINNED_BYTES] += counts.pinned_bytes;
        lane->counters[WEFT_COUNT_PINNED_REGIONS] += counts.pinned_regions;
        lane->counters[WEFT_COUNT_PINNED_MOST] += counts.most_pinned_bytes;
    }
}
