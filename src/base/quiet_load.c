/* SPDX-License-Identifier: BSD-3-Clause
 *
 * quiet_load: see quiet_load.h. An object is known by the address of its program headers.
 */
#include "base/quiet_load.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OBJECTS_MAX 1024

typedef struct object_list {
    const void *headers[OBJECTS_MAX]; /* of the objects that were loaded before */
    size_t count;
    uintptr_t sought; /* is_new: a function's address ... */
    bool is_new;      /* ... is in an object that is not in the list */
} object_list;

static int note(struct dl_phdr_info *object, size_t bytes, void *arg)
{
    object_list *list = arg;
    (void)bytes;
    if (list->count < OBJECTS_MAX)
        list->headers[list->count++] = object->dlpi_phdr;
    return 0;
}

static bool holds(const struct dl_phdr_info *object, uintptr_t address)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && address - (object->dlpi_addr + part->p_vaddr) < part->p_memsz)
            return true;
    }
    return false;
}

static int look(struct dl_phdr_info *object, size_t bytes, void *arg)
{
    object_list *list = arg;
    (void)bytes;
    if (!holds(object, list->sought))
        return 0;
    list->is_new = true;
    for (size_t i = 0; i < list->count; i++)
        list->is_new &= list->headers[i] != object->dlpi_phdr;
    return 1;
}

static bool is_of_new_object(object_list *before, const struct sigaction *action)
{
    before->sought = (uintptr_t)action->sa_handler; /* the same place as sa_sigaction */
    before->is_new = false;
    dl_iterate_phdr(look, before);
    return before->is_new;
}

void *weft_quiet_load(const char *path)
{
    struct sigaction handlers[NSIG], now;
    bool is_known[NSIG] = {false};
    object_list before = {.count = 0};
    sigset_t all, mask;
    void *handle;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    for (int i = 1; i < NSIG; i++)
        is_known[i] = sigaction(i, NULL, &handlers[i]) == 0;
    dl_iterate_phdr(note, &before);
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    for (int i = 1; i < NSIG; i++)
        if (is_known[i] && sigaction(i, NULL, &now) == 0 && is_of_new_object(&before, &now))
            sigaction(i, &handlers[i], NULL);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return handle;
}
