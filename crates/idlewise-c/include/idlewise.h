/* When background work may run beside a foreground, and in what size of step.
 *
 * A driver is told when foreground requests arrive and complete, and when a step of background work begins and ends. It says when the
 * next step may begin. Times are nanoseconds on any clock that does not go back; the calls come in order of time. A driver is used by
 * one thread at a time. No call fails, and none keeps a pointer that it was given. */
#ifndef IDLEWISE_H
#define IDLEWISE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct idlewise_driver idlewise_driver;

/* How long a step of some size takes. */
typedef struct {
    uint64_t bytes;
    uint64_t ns;
} idlewise_point;

enum {
    IDLEWISE_STEP = 0,      /* One step of `bytes`, now. */
    IDLEWISE_ASK_AT = 1,    /* Nothing yet: ask again at `at_ns`. */
    IDLEWISE_WHEN_IDLE = 2, /* Nothing until the device is idle again: ask when a request completes. */
    IDLEWISE_PAUSED = 3     /* The account of the slowdown holds too little: ask when requests have completed, or at `at_ns`. */
};

typedef struct {
    uint32_t kind;
    uint64_t bytes;
    uint64_t at_ns;
} idlewise_next;

typedef struct {
    uint64_t foreground_requests;
    uint64_t collisions;       /* Steps in service when a request arrived. */
    uint64_t mean_slowdown_ns; /* Over all foreground requests. */
    uint64_t max_slowdown_ns;
    uint64_t steps;
    uint64_t worked_bytes;
} idlewise_measured;

/* A mean slowdown is kept by an account and by an experiment: a few usable idle intervals are left alone, and compared with those that were
 * used. So it also holds on devices that serve several requests at a time. There what `idlewise_get_measured` says is only the account's
 * part, which takes the device for one that serves one request after the other.
 *
 * Steps of `bytes` once the device has been idle for `idle_wait_ns`; held within `mean_slowdown_ns` if that is not 0. The device is
 * idle at `now_ns`. Never NULL; a size of 0 is taken for 1. */
idlewise_driver *idlewise_waiting(uint64_t idle_wait_ns, uint64_t bytes, uint64_t mean_slowdown_ns, uint64_t now_ns);

/* Chooses the wait and the size itself, again and again, for a mean slowdown and steps that take no longer than `max_slowdown_ns`.
 * NULL unless there are two points at least, in order of size, with times above zero that never fall. */
idlewise_driver *idlewise_adaptive(const idlewise_point *points, size_t count, uint64_t mean_slowdown_ns,
                                   uint64_t max_slowdown_ns, uint64_t now_ns);

/* Nothing happens to NULL, here and below. */
void idlewise_free(idlewise_driver *driver);

void idlewise_arrived(idlewise_driver *driver, uint64_t now_ns);
void idlewise_completed(idlewise_driver *driver, uint64_t now_ns, uint64_t arrival_ns);
void idlewise_step_began(idlewise_driver *driver, uint64_t now_ns, uint64_t bytes);
void idlewise_step_ended(idlewise_driver *driver, uint64_t now_ns);

/* What to do now; IDLEWISE_WHEN_IDLE without a driver. */
idlewise_next idlewise_ask(idlewise_driver *driver, uint64_t now_ns);

/* What the foreground suffered so far. */
idlewise_measured idlewise_get_measured(const idlewise_driver *driver);

#ifdef __cplusplus
}
#endif

#endif
