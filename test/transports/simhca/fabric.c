/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fabric: time, the heap of events, chance and counts of the simulated HCAs. See hca.h.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/macros.h"
#include "test/transports/simhca/hca.h"

#define DULL_POLLS 16u        /* empty polls before the simulator's own clock runs faster */
#define DULL_STEP_NS 1000000u /* ... largest factor */

hca_fabric hca;
uint64_t simhca_rings, simhca_activity;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t keeper; /* thread that opened the fabric: only its calls advance time */

const char *const simhca_count_names[SIMHCA_COUNT_LAST] = {
    "posts", "sends", "writes", "reads", "atomics", "bytes", "inline", "unsignalled", "completions", "errors", "flushed", "rnr",
    "resent", "acks-lost", "breaks", "torn", "datagrams", "datagrams-lost", "datagrams-twice", "overtaken", "flaps", "dropped",
    "registered", "reg-refused", "post-refused", "keys-refused", "flipped", "events", "wakes", "killed", "overruns", "qps",
    "binds", "relaxed-writes",
};

void hca_lock(void)
{
    pthread_mutex_lock(&lock);
}

void hca_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void hca_misuse(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("simhca: misuse of libibverbs: ", stderr);
    vfprintf(stderr, format, args);
    fprintf(stderr, " (process %u, %" PRIu64 " ns)\n", hca.process, hca.now);
    va_end(args);
    abort();
}

/* xorshift128+, seeded by splitmix64. */
uint64_t hca_random(void)
{
    uint64_t a = hca.random[0], b = hca.random[1];
    hca.random[0] = b;
    a ^= a << 23;
    hca.random[1] = a ^ b ^ (a >> 17) ^ (b >> 26);
    return hca.random[1] + b;
}

static uint64_t split(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

bool hca_chance(uint32_t part, uint32_t of)
{
    return part && (hca_random() >> 11) % of < part;
}

/* Most are fast and a few take the full delay: more overtaking than with a uniform distribution. */
uint64_t hca_delay(uint32_t max, uint64_t bytes)
{
    uint64_t span = hca_chance(250, 1000) ? max : max / 8 + 1;
    return 1 + hca_random() % (span ? span : 1) + bytes * hca.profile.ns_per_kib / 1024;
}

bool simhca_open(const simhca_profile *profile, uint64_t seed, uint32_t processes_per_host)
{
    uint64_t state = seed ^ 0x686361u;
    uint32_t per_host = processes_per_host ? processes_per_host : 1;
    hca = (hca_fabric){.is_open = true, .profile = *profile, .seed = seed, .per_host = per_host};
    if (!hca.profile.devices)
        hca.profile.devices = 1;
    if (!hca.profile.delay_ns)
        hca.profile.delay_ns = 500;
    if (!hca.profile.ack_ns)
        hca.profile.ack_ns = hca.profile.delay_ns;
    weft_list_init(&hca.cm_channels);
    weft_list_init(&hca.cm_ids);
    hca.random[0] = split(&state);
    hca.random[1] = split(&state) | 1;
    hca.purges = split(&state) & 1;
    hca.now = 1000;
    keeper = pthread_self();
    simhca_rings = simhca_activity = 0;
    return true;
}

void hca_open_default(void)
{
    if (hca.is_open)
        return;
    char name[32] = "calm";
    uint64_t seed = 1;
    const char *text = getenv("WEFT_TEST_SIMHCA");
    if (text)
        sscanf(text, "%31[^:]:%" SCNu64, name, &seed);
    const simhca_profile *profile = simhca_profile_find(name);
    if (!profile)
        hca_misuse("WEFT_TEST_SIMHCA names no profile: %s", name);
    simhca_open(profile, seed, 0);
}

bool simhca_is_open(void)
{
    return hca.is_open;
}

uint32_t simhca_close(FILE *out)
{
    static const char *const kinds[] = {"domains", "regions", "completion queues", "channels", "shared receive queues",
                                        "queue pairs", "address handles", "windows", "contexts"};
    uint32_t total = 0;
    hca_lock();
    total += hca_cm_close(out);
    for (uint32_t i = 0; i < hca.device_count; i++)
        if (hca.devices[i])
            hca_device_free(hca.devices[i]);
    for (uint32_t i = 0; i < hca.heap_count; i++)
        hca_event_free(hca.heap[i]);
    free(hca.heap);
    free(hca.devices);
    for (uint32_t i = 0; i < weft_count(kinds); i++) {
        total += hca.left[i];
        if (hca.left[i] && out)
            fprintf(out, "simhca: %u %s were left open\n", hca.left[i], kinds[i]);
    }
    hca.is_open = false;
    hca.heap = NULL;
    hca.devices = NULL;
    hca.heap_count = hca.heap_capacity = hca.device_count = hca.device_capacity = 0;
    hca_unlock();
    return total;
}

void simhca_process(uint32_t process)
{
    hca.process = process;
}

uint32_t simhca_process_now(void)
{
    return hca.process;
}

/* -- events -- */

hca_event *hca_event_new(enum hca_event_kind kind)
{
    hca_event *event = calloc(1, sizeof *event);
    if (!event)
        hca_misuse("no memory for an event of the simulation");
    weft_list_init(&event->link);
    event->kind = kind;
    return event;
}

void hca_event_free(hca_event *event)
{
    weft_list_remove(&event->link);
    free(event->body);
    free(event);
}

static bool earlier(const hca_event *a, const hca_event *b)
{
    return a->due != b->due ? a->due < b->due : a->order < b->order;
}

void hca_event_post(hca_event *event, uint64_t due)
{
    if (hca.heap_count == hca.heap_capacity) {
        hca.heap_capacity = hca.heap_capacity ? 2 * hca.heap_capacity : 256;
        hca.heap = realloc(hca.heap, hca.heap_capacity * sizeof *hca.heap);
        if (!hca.heap)
            hca_misuse("no memory for %u events of the simulation", hca.heap_capacity);
    }
    event->due = due > hca.now ? due : hca.now + 1;
    event->order = ++hca.next_order;
    uint32_t i = hca.heap_count++;
    for (; i && earlier(event, hca.heap[(i - 1) / 2]); i = (i - 1) / 2)
        hca.heap[i] = hca.heap[(i - 1) / 2];
    hca.heap[i] = event;
}

static hca_event *pop(void)
{
    hca_event *first = hca.heap[0], *last = hca.heap[--hca.heap_count];
    uint32_t i = 0, child;
    while ((child = 2 * i + 1) < hca.heap_count) {
        if (child + 1 < hca.heap_count && earlier(hca.heap[child + 1], hca.heap[child]))
            child++;
        if (!earlier(hca.heap[child], last))
            break;
        hca.heap[i] = hca.heap[child];
        i = child;
    }
    if (hca.heap_count)
        hca.heap[i] = last;
    return first;
}

/* Each handler frees the event or passes it on. */
static void happen(hca_event *event)
{
    switch (event->kind) {
    case HCA_SEND: hca_requester_send(event); break;
    case HCA_REQUEST: hca_responder_request(event); return;
    case HCA_ANSWER: hca_requester_response(event); return;
    case HCA_TIMER: hca_requester_timer(event); break;
    case HCA_RNR_OVER: hca_requester_rnr_over(event); break;
    case HCA_VISIBILITY: hca_visibility_step(event); break;
    case HCA_FETCH: hca_responder_fetch(event); break;
    case HCA_FLUSH: hca_qp_flush(event); break;
    case HCA_UD: hca_ud_recv(event); break;
    case HCA_FLAP: hca_faults_flap(event); break;
    case HCA_CM: hca_cm_arrive(event); break;
    }
    hca_event_free(event);
}

void hca_advance(uint64_t now)
{
    while (hca.heap_count && hca.heap[0]->due <= now) {
        hca_event *event = pop();
        hca.now = event->due;
        happen(event);
    }
    if (now > hca.now)
        hca.now = now;
}

/* -- time -- */

uint64_t simhca_now_ns(void)
{
    return hca.now;
}

void simhca_advance(uint64_t now_ns)
{
    if (!hca.is_open)
        return;
    hca_lock();
    hca_advance(now_ns);
    hca_unlock();
}

uint64_t simhca_next_due(void)
{
    return hca.heap_count ? hca.heap[0]->due : UINT64_MAX;
}

void simhca_clock(void (*pass)(void *arg, uint64_t ns), void *arg)
{
    hca.pass = pass;
    hca.pass_arg = arg;
}

void simhca_pass(uint64_t ns)
{
    if (hca.pass)
        hca.pass(hca.pass_arg, ns);
    else
        simhca_advance(hca.now + ns);
}

/* After many empty polls the clock runs faster, never beyond the next event. */
static uint64_t longer(uint64_t ns)
{
    uint32_t doublings = hca.dull > DULL_POLLS ? (hca.dull - DULL_POLLS) / 8 : 0;
    uint64_t step = doublings < 14 ? 100ull << doublings : DULL_STEP_NS, next = simhca_next_due();
    if (hca.dull <= DULL_POLLS)
        return ns;
    step = step < DULL_STEP_NS ? step : DULL_STEP_NS;
    return next > hca.now && next - hca.now < step ? next - hca.now : step;
}

void hca_spend(uint64_t ns, bool was_empty)
{
    if (!pthread_equal(pthread_self(), keeper))
        return;
    hca.dull = was_empty ? hca.dull + 1 : 0;
    simhca_pass(hca.pass ? ns : longer(ns));
}

void hca_spin(uint64_t ns)
{
    if (!pthread_equal(pthread_self(), keeper))
        return;
    hca.dull++;
    simhca_pass(longer(ns));
}

void hca_ring(int fd)
{
    uint64_t one = 1;
    simhca_rings++;
    hca.counts[SIMHCA_WAKES]++;
    if (write(fd, &one, sizeof one) != sizeof one)
        hca_misuse("an event descriptor takes no more: nobody has read its events");
}

uint64_t simhca_counter(enum simhca_count which)
{
    return hca.counts[which];
}

void simhca_print(FILE *out)
{
    fprintf(out, "simhca: %s seed %" PRIu64 ":", hca.profile.name ? hca.profile.name : "own profile", hca.seed);
    for (int i = 0; i < SIMHCA_COUNT_LAST; i++)
        if (hca.counts[i])
            fprintf(out, " %s %" PRIu64, simhca_count_names[i], hca.counts[i]);
    fprintf(out, "; %" PRIu64 " us\n", hca.now / 1000);
}

/* Replaces libc's function: nonces are drawn from the seed, so that runs can be replayed. */
__attribute__((visibility("default"))) ssize_t getrandom(void *to, size_t bytes, unsigned flags)
{
    (void)flags;
    hca_open_default();
    hca_lock();
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)to)[i] = (uint8_t)(hca_random() >> 32);
    hca_unlock();
    return (ssize_t)bytes;
}
