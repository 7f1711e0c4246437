/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fibre: see fibre.h. On x86-64 a switch is a dozen instructions; elsewhere ucontext does it, at two system calls each.
 */
#include "test/transports/sim/fibre.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/macros.h"

#if defined(__SANITIZE_ADDRESS__)
#define FIBRE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBRE_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define FIBRE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FIBRE_TSAN 1
#endif
#endif

#ifdef FIBRE_ASAN
void __sanitizer_start_switch_fiber(void **fake_stack_save, const void *bottom, size_t size);
void __sanitizer_finish_switch_fiber(void *fake_stack_save, const void **bottom_old, size_t *size_old);
void __lsan_register_root_region(const void *p, size_t size);
#endif
#ifdef FIBRE_TSAN
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
#endif

#ifndef __x86_64__
#include <ucontext.h>
#endif

struct weft_fibre {
    void (*run)(void *arg);
    void *arg;
    char *stack; /* lowest byte, the guard page */
    size_t stack_bytes;
    bool is_over;
#ifdef __x86_64__
    void *here, *host; /* stack pointers of whichever of both does not run */
#else
    ucontext_t here, host;
#endif
    void *fake_here, *fake_host; /* ASan's */
    const void *host_bottom;
    size_t host_bytes;
    void *tsan_here, *tsan_host;
};

#ifdef __x86_64__
/* Keeps the callee's registers on the stack, its pointer in *save, and goes on where `load` was kept. */
__attribute__((naked, noinline)) static void swap(void **save __attribute__((unused)), void *load __attribute__((unused)))
{
    __asm__("push %rbp\n\tpush %rbx\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n\t"
            "mov %rsp, (%rdi)\n\tmov %rsi, %rsp\n\t"
            "pop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbx\n\tpop %rbp\n\tret");
}
#endif

/* The annotations of one switch: before it on the stack that is left, after it on the one that is entered. */
static void enter_begin(weft_fibre *fibre)
{
#ifdef FIBRE_ASAN
    __sanitizer_start_switch_fiber(&fibre->fake_host, fibre->stack, fibre->stack_bytes);
#endif
#ifdef FIBRE_TSAN
    fibre->tsan_host = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fibre->tsan_here, 0);
#endif
    (void)fibre;
}

static void enter_end(weft_fibre *fibre)
{
#ifdef FIBRE_ASAN
    __sanitizer_finish_switch_fiber(fibre->fake_here, &fibre->host_bottom, &fibre->host_bytes);
#endif
    (void)fibre;
}

static void leave_begin(weft_fibre *fibre)
{
#ifdef FIBRE_ASAN
    __sanitizer_start_switch_fiber(fibre->is_over ? NULL : &fibre->fake_here, fibre->host_bottom, fibre->host_bytes);
#endif
#ifdef FIBRE_TSAN
    __tsan_switch_to_fiber(fibre->tsan_host, 0);
#endif
    (void)fibre;
}

static void leave_end(weft_fibre *fibre)
{
#ifdef FIBRE_ASAN
    __sanitizer_finish_switch_fiber(fibre->fake_host, NULL, NULL);
#endif
    (void)fibre;
}

void weft_fibre_pause(weft_fibre *fibre)
{
    leave_begin(fibre);
#ifdef __x86_64__
    swap(&fibre->here, fibre->host);
#else
    swapcontext(&fibre->here, &fibre->host);
#endif
    enter_end(fibre);
}

static void start(weft_fibre *fibre)
{
    enter_end(fibre);
    fibre->run(fibre->arg);
    fibre->is_over = true;
    weft_fibre_pause(fibre);
    abort(); /* an ended fibre is never resumed */
}

#ifdef __x86_64__
/* First entered by swap's ret: rbx holds the fibre. */
__attribute__((naked, noinline)) static void first(void)
{
    __asm__("mov %%rbx, %%rdi\n\txor %%ebp, %%ebp\n\tcall *%%r12\n\tud2" ::: "memory");
}

static void prepare(weft_fibre *fibre)
{
    uintptr_t top = ((uintptr_t)fibre->stack + fibre->stack_bytes) & ~(uintptr_t)15;
    uintptr_t *sp = (uintptr_t *)top;
    *--sp = 0;                  /* keeps the alignment that `call` in `first` expects */
    *--sp = 0;
    *--sp = (uintptr_t)first;   /* swap returns here */
    *--sp = 0;                  /* rbp */
    *--sp = (uintptr_t)fibre;   /* rbx */
    *--sp = (uintptr_t)start;   /* r12 */
    *--sp = 0;                  /* r13 */
    *--sp = 0;                  /* r14 */
    *--sp = 0;                  /* r15 */
    fibre->here = sp;
}
#else
static void first(unsigned high, unsigned low)
{
    start((weft_fibre *)(((uintptr_t)high << 32) | low));
}

static void prepare(weft_fibre *fibre)
{
    getcontext(&fibre->here);
    fibre->here.uc_stack = (stack_t){.ss_sp = fibre->stack, .ss_size = fibre->stack_bytes};
    makecontext(&fibre->here, (void (*)(void))first, 2, (unsigned)((uint64_t)(uintptr_t)fibre >> 32), (unsigned)(uintptr_t)fibre);
}
#endif

weft_fibre *weft_fibre_new(void (*run)(void *arg), void *arg, size_t stack_bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    weft_fibre *fibre = calloc(1, sizeof *fibre);
    if (!fibre)
        return NULL;
    fibre->run = run;
    fibre->arg = arg;
    fibre->stack_bytes = weft_round_up(stack_bytes, page) + page;
    fibre->stack = mmap(NULL, fibre->stack_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (fibre->stack == MAP_FAILED) {
        free(fibre);
        return NULL;
    }
    mprotect(fibre->stack, page, PROT_NONE);
#ifdef FIBRE_TSAN
    fibre->tsan_here = __tsan_create_fiber(0);
#endif
    prepare(fibre);
    return fibre;
}

bool weft_fibre_resume(weft_fibre *fibre)
{
    enter_begin(fibre);
#ifdef __x86_64__
    swap(&fibre->host, fibre->here);
#else
    swapcontext(&fibre->host, &fibre->here);
#endif
    leave_end(fibre);
    return !fibre->is_over;
}

void weft_fibre_free(weft_fibre *fibre)
{
    if (!fibre)
        return;
    if (fibre->is_over) {
        munmap(fibre->stack, fibre->stack_bytes);
#ifdef FIBRE_TSAN
        __tsan_destroy_fiber(fibre->tsan_here);
#endif
    } else {
#ifdef FIBRE_ASAN
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        __lsan_register_root_region(fibre->stack + page, fibre->stack_bytes - page);
#else
        munmap(fibre->stack, fibre->stack_bytes);
#endif
    }
    free(fibre);
}
