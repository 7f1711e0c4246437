/* SPDX-License-Identifier: BSD-3-Clause
 *
 * call_status: see call_status.h. Invariant: the records' address never changes. Its pages are mapped from the segment while a world is
 * open, and anonymous before and after. `lock` guards the static variables and the owners of the records.
 */
#include "core/call_status.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

union weft_call_page weft_call_page __attribute__((aligned(WEFT_PAGE)));
bool weft_call_is_threaded;
__thread weft_call_record *weft_call_thread_record;

static weft_call_record nowhere;   /* shared by threads beyond WEFT_CALL_RECORDS and those without memory */
static weft_call_record *records;  /* [WEFT_CALL_RECORDS]; NULL: never threaded */
static uint32_t claimed_bytes;     /* bytes of records claimed in the open segment */
static uint64_t records_at;        /* offset of records in the open segment */
static const weft_segment *open_segment; /* NULL: none */
static weft_rank_page *open_page;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the above and the owners of the records */
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static void on_thread_exit(void *given)
{
    weft_call_record *record = given;

    weft_call_thread_record = NULL;
    if (record == &nowhere)
        return;
    pthread_mutex_lock(&lock);
    record->thread = 0;
    pthread_mutex_unlock(&lock);
}

static void key_make(void) { pthread_key_create(&key, on_thread_exit); }

/* Claims the segment's pages of record `index`; false: no memory. Requires lock. */
static bool is_backed(uint32_t index)
{
    uint64_t end = weft_round_up((uint64_t)(index + 1) * sizeof(*records), WEFT_PAGE);

    if (!open_segment || end <= claimed_bytes)
        return true;
    if (weft_segment_claim(open_segment, records_at + claimed_bytes, end - claimed_bytes))
        return false;
    claimed_bytes = (uint32_t)end;
    return true;
}

weft_call_record *weft_call_record_alloc(void)
{
    weft_call_record *record = &nowhere;
    uint32_t i = 0;

    pthread_once(&key_once, key_make);
    pthread_mutex_lock(&lock);
    while (i < WEFT_CALL_RECORDS && is_backed(i) && records[i].thread)
        i++;
    if (i < WEFT_CALL_RECORDS && is_backed(i)) {
        record = &records[i];
        *record = (weft_call_record){.thread = (uint32_t)syscall(SYS_gettid)};
        if (open_page && i >= atomic_load_explicit(&open_page->call_records, memory_order_relaxed))
            atomic_store_explicit(&open_page->call_records, i + 1, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    weft_call_thread_record = record;
    pthread_setspecific(key, record);
    return record;
}

/* Maps other memory (fd -1: anonymous) at an address and keeps its first `used` bytes. Requires lock. */
static bool replace(void *at, size_t bytes, size_t used, int fd, uint64_t offset)
{
    static char kept[WEFT_CALL_BYTES];

    memcpy(kept, at, used);
    if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_FIXED | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED), fd,
             (off_t)offset) == MAP_FAILED)
        return false;
    memcpy(at, kept, used);
    return true;
}

static bool open_threaded(const weft_segment *segment)
{
    if (!records) {
        void *fresh = mmap(NULL, WEFT_CALL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (fresh == MAP_FAILED)
            return false;
        records = fresh;
    }
    if (!segment || segment->fd < 0)
        return true;
    if (!weft_segment_claim(segment, records_at, WEFT_PAGE) && replace(records, WEFT_CALL_BYTES, WEFT_PAGE, segment->fd, records_at)) {
        open_segment = segment;
        claimed_bytes = WEFT_PAGE;
        atomic_store_explicit(&open_page->call_is_threaded, 1, memory_order_relaxed);
    }
    return true;
}

static void adopt(void)
{
    weft_call_record *record = weft_call_record_alloc();

    record->call = weft_call_page.record.call;
    record->count = weft_call_page.record.count;
}

void weft_call_open(const weft_segment *segment, uint32_t local, bool is_threaded)
{
    bool has_place = segment && segment->fd >= 0;

    pthread_mutex_lock(&lock);
    open_page = has_place ? weft_segment_rank(segment, local) : NULL;
    records_at = has_place ? segment->hdr->calls + (uint64_t)local * WEFT_CALL_BYTES : 0;
    /* larger pages: weft_call_page cannot be remapped alone, so each thread gets a record of its own */
    weft_call_is_threaded = (is_threaded || sysconf(_SC_PAGESIZE) != WEFT_PAGE) && open_threaded(segment);
    if (has_place && !weft_call_is_threaded && !weft_segment_claim(segment, records_at, WEFT_PAGE) &&
        replace(&weft_call_page, WEFT_PAGE, sizeof(weft_call_page), segment->fd, records_at)) {
        open_segment = segment;
        weft_call_page.record.thread = (uint32_t)syscall(SYS_gettid);
        atomic_store_explicit(&open_page->call_records, 1, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    if (weft_call_is_threaded && !weft_call_thread_record) /* this thread is inside MPI_Init, which the single record has counted */
        adopt();
}

void weft_call_close(void)
{
    pthread_mutex_lock(&lock);
    if (open_segment && weft_call_is_threaded)
        replace(records, WEFT_CALL_BYTES, claimed_bytes, -1, 0);
    else if (open_segment)
        replace(&weft_call_page, WEFT_PAGE, sizeof(weft_call_page), -1, 0);
    open_segment = NULL;
    open_page = NULL;
    pthread_mutex_unlock(&lock);
}
