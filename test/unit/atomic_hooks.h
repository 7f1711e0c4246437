/* SPDX-License-Identifier: BSD-3-Clause
 *
 * atomic_hooks: replaces C11's atomic operations by plain ones with a point before each, where another thread of the test may run
 * (interleave.h). Included by the hooks of a test before the files under test, after its definitions of POINT(), LOAD_POINT(p) and
 * STORE_POINT(p).
 */
#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub_explicit
#undef atomic_fetch_or_explicit
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_weak_explicit
/* One thread runs at a time: plain accesses suffice. */
#define UPDATE(p, how) ({ __auto_type p_ = (p); __auto_type old_ = *p_; POINT(); old_ = *p_; how; old_; })
#define atomic_load_explicit(p, order) (LOAD_POINT(p), *(p))
#define atomic_store_explicit(p, value, order) (STORE_POINT(p), (void)(*(p) = (value)))
#define atomic_exchange_explicit(p, value, order) UPDATE(p, *p_ = (value))
#define atomic_fetch_add_explicit(p, value, order) UPDATE(p, *p_ = old_ + (value))
#define atomic_fetch_sub_explicit(p, value, order) UPDATE(p, *p_ = old_ - (value))
#define atomic_fetch_or_explicit(p, value, order) UPDATE(p, *p_ = old_ | (value))
#define atomic_compare_exchange_strong_explicit(p, expected, value, yes, no) \
    ({ __auto_type e_ = (expected); bool is_same_; \
       UPDATE(p, (is_same_ = old_ == *e_) ? (void)(*p_ = (value)) : (void)(*e_ = old_)); is_same_; })
#define atomic_compare_exchange_weak_explicit(p, expected, value, yes, no) \
    atomic_compare_exchange_strong_explicit(p, expected, value, yes, no)
