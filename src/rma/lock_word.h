/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lock_word: a fair lock for many readers or one writer in a word: tickets, which processes that map the word take in the order of their
 * atomic instructions. Three counts of 20 bits, which wrap: tickets given, the ticket whose reader may enter, and the ticket whose writer
 * may enter (as many members have given the lock back). All zero: free.
 * Invariant: writer <= reader <= given (mod 2^20), as at most 2^20 - 1 members hold the lock or wait for it.
 */
#ifndef WEFT_RMA_LOCK_WORD_H
#define WEFT_RMA_LOCK_WORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WEFT_LOCK_BITS 20
#define WEFT_LOCK_MASK (((uint64_t)1 << WEFT_LOCK_BITS) - 1)
enum weft_lock_word_count { WEFT_LOCK_GIVEN, WEFT_LOCK_READER, WEFT_LOCK_WRITER };

static inline uint32_t weft_lock_word_count(uint64_t word, enum weft_lock_word_count which)
{
    return (uint32_t)(word >> which * WEFT_LOCK_BITS & WEFT_LOCK_MASK);
}

/* The word with one count increased; it wraps within its bits. */
static inline uint64_t weft_lock_word_increased(uint64_t word, enum weft_lock_word_count which)
{
    uint64_t mask = WEFT_LOCK_MASK << which * WEFT_LOCK_BITS;
    return (word & ~mask) | ((word + ((uint64_t)1 << which * WEFT_LOCK_BITS)) & mask);
}

/* Acquires the lock if it is compatible with all holders and waiters. Does not wait. */
static inline bool weft_lock_word_try(_Atomic uint64_t *lock, bool is_exclusive)
{
    uint64_t word = atomic_load_explicit(lock, memory_order_relaxed), taken;
    do {
        if (weft_lock_word_count(word, is_exclusive ? WEFT_LOCK_WRITER : WEFT_LOCK_READER) != weft_lock_word_count(word, WEFT_LOCK_GIVEN))
            return false;
        taken = weft_lock_word_increased(word, WEFT_LOCK_GIVEN);
        if (!is_exclusive)
            taken = weft_lock_word_increased(taken, WEFT_LOCK_READER);
    } while (!atomic_compare_exchange_weak_explicit(lock, &word, taken, memory_order_seq_cst, memory_order_relaxed));
    return true;
}

/* Gets in line. */
static inline uint32_t weft_lock_word_take_ticket(_Atomic uint64_t *lock)
{
    uint64_t word = atomic_load_explicit(lock, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(lock, &word, weft_lock_word_increased(word, WEFT_LOCK_GIVEN), memory_order_seq_cst,
                                                  memory_order_relaxed))
        ;
    return weft_lock_word_count(word, WEFT_LOCK_GIVEN);
}

/* Is it this ticket's turn? Then its owner calls weft_lock_word_enter once, and has the lock. */
static inline bool weft_lock_word_is_turn(const _Atomic uint64_t *lock, uint32_t ticket, bool is_exclusive)
{
    uint64_t word = atomic_load_explicit(lock, memory_order_seq_cst);
    return weft_lock_word_count(word, is_exclusive ? WEFT_LOCK_WRITER : WEFT_LOCK_READER) == ticket;
}

static inline void weft_lock_word_increase(_Atomic uint64_t *lock, bool reader, bool writer)
{
    uint64_t word = atomic_load_explicit(lock, memory_order_relaxed), next;
    do {
        next = reader ? weft_lock_word_increased(word, WEFT_LOCK_READER) : word;
        next = writer ? weft_lock_word_increased(next, WEFT_LOCK_WRITER) : next;
    } while (!atomic_compare_exchange_weak_explicit(lock, &word, next, memory_order_seq_cst, memory_order_relaxed));
}

/* Acquires the lock for the ticket whose turn it is. A reader also admits the next reader: its caller must wake the waiters. */
static inline void weft_lock_word_enter(_Atomic uint64_t *lock, bool is_exclusive)
{
    if (!is_exclusive)
        weft_lock_word_increase(lock, true, false);
}

/* Gives the lock back. The caller wakes those that wait. */
static inline void weft_lock_word_release(_Atomic uint64_t *lock, bool is_exclusive) { weft_lock_word_increase(lock, is_exclusive, true); }

#endif
