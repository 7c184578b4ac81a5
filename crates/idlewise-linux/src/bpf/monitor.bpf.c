// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Watches the requests of one disk on the block tracepoints and tells user space when they arrive and complete: of each one while that
// is wanted, else of the first that comes to an idle disk and the last before it is idle again, with a sum of the others.
// A request is there from the first time it is seen, inserted into the scheduler or issued to the driver, until its last
// byte completes; it arrived when it was submitted, which may be earlier. The scrubber's own requests are those that lie in the
// range which it announces before it issues them, all its reads where it looks things up on this disk, commands of the disk's own when it
// announces one, and writes while it saves its checkpoint on this disk, or that follow from that or from its reads; none of them comes from
// another process. Where a command is run in the gaps, its requests are known by their control group instead.
//
// A volume that is stacked on other disks (md, device-mapper) has no requests: there the same is done with bios (bios.bpf.h).
//
// Programs are attached in the order of this file: those that see requests leave before those that see them come, as one that
// came and was not seen to leave would count as outstanding for ever.

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#include "kernel.bpf.h"

#define BUCKETS_LOG2 11
#define BUCKETS (1 << BUCKETS_LOG2)
// A request is in one of so many places of the bucket that its address leads to: their addresses fill a cache line.
#define PLACES 8
#define NO_TIME ~0ULL
#define LENGTH_BITS 20
#define RING_BYTES (4 * 1024 * 1024)

// The word of what is kept untold: so many bits for the response times, and no more requests, nor a longer response time.
#define UNTOLD_BITS 44
#define MOST_UNTOLD 1024ULL
#define LONGEST_UNTOLD 10000000000ULL

enum kind { ARRIVAL = 0, COMPLETION = 1 };

// Whose a request is: the foreground's, ours, or that of another work of idlewise.
enum whose { FOREGROUND = 0, OWN = 1, ANOTHER = 2 };

// What user space reads from the ring.
struct event {
	__u64 time;    // CLOCK_MONOTONIC, ns
	__u64 arrival; // of the request: when it was submitted
	__u64 issue;   // to the driver; zero before it
	__u64 sector;  // first, of 512 bytes, on the whole disk
	__u64 responses; // of the untold together, ns
	__u32 untold;    // foreground requests that completed before this one and were not told of
	__u32 bytes;
	__u8 kind;
	__u8 op; // REQ_OP_*
	__u8 own; // enum whose
	__u8 others; // enum others
	__u32 pad;
};

// Whether other foreground requests are there. Where each is told of, user space counts them itself.
enum others { UNSAID = 0, NONE = 1, SOME = 2 };

// A request that is there.
struct open_request {
	__u64 arrival;
	__u64 issue;
	__u64 sector;
	__u32 bytes;
	__u8 op;
	__u8 own; // enum whose
	__u8 pad[2];
};

// Places for requests, whose addresses are beside each other. Whoever writes an address where there was none has the place, and whoever
// writes none there again has counted the request.
struct bucket {
	__u64 address[PLACES];
	struct open_request request[PLACES];
};

// A table of our own: the kernel's hash table takes microseconds for what takes a few nanoseconds here.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, BUCKETS);
	__type(key, __u32);
	__type(value, struct bucket);
} requests SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} events SEC(".maps");

// Set before loading; all there is in .rodata.
const volatile struct {
	__s32 disk_major;
	__s32 disk_minor;
	// Tell of completions only, and never wake anybody up: the recorder looks in now and then.
	__u32 recording;
	// So many bytes in the ring, and user space is woken.
	__u32 wake_at;
	// With so many requests of others there a place in the disk's queue may be hard to get.
	__u32 crowd;
	// In units of how many sectors user space announces its own requests, as a power of two.
	__u32 own_unit;
	// The number of the control group whose requests are ours; zero where they are the scrubber's.
	__u64 group;
	// What lies whole in these sectors of the disk is somebody else's to watch, and flushes are with it; nothing where the end is zero.
	__u64 except_begin;
	__u64 except_end;
} settings;

// What both sides change while it runs; all there is in .bss. What changes with each request is in a cache line apart.
struct {
	// Written by user space: the range of its own requests in units, first and length in one word, which is read and
	// written at once; zero when there are none.
	__u64 own_range;
	__u64 lost_events;
	// Written by user space: one command of its own is in service, which has no place.
	__u32 own_command;
	// Written by user space: so many files of its own are being saved on this disk.
	__u32 own_writes;
	// The scrubber's process, as the kernel counts them; zero before it has introduced itself.
	__u32 own_tgid;
	// Written by user space: each foreground request is to be told of. Else it is told of the first one that comes to an idle disk, and of
	// the last one before it is idle again.
	__u32 tell_each;
	// Threads in the table of those that may be waiting for a place; both sides forget them.
	__s64 waiting;
	// When one was last seen to have waited.
	__u64 late_at;
	// There were nearly as many requests as make a crowd; user space forgets it.
	__u32 crowd_seen;
	// Written by user space: its process looks things up on this disk, so that each read of it is its own.
	__u32 own_lookups;
	// Written by user space: how many other works of idlewise there are.
	__u32 works;
	__u32 pad;
	// Read by user space.
	__s64 foreground_open;
	// Foreground requests that completed and were not told of yet, and their response times together, in one word.
	__u64 untold;
	// Written by user space: until then the file system may still write what a save of its own has left behind.
	__u64 own_late;
	// So many writes at most; those beyond are of what others have left behind.
	__s64 own_late_writes;
	// When somebody last submitted a write that is waited for, and whose it was: one of `enum whose`.
	__u64 synced_at;
	__u64 synced_by;
	__u64 line[2];
} shared;

static __always_inline int watched_disk(struct gendisk *disk)
{
	return disk && disk->major == settings.disk_major && disk->first_minor == settings.disk_minor;
}

static __always_inline int watched(struct request *rq)
{
	return watched_disk(rq->q->disk);
}

#include "group.bpf.h"

// Whether another process is at it. Kernel threads issue requests for anyone.
static __always_inline int from_another(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();

	return shared.own_tgid && !(task->flags & PF_KTHREAD) && bpf_get_current_pid_tgid() >> 32 != shared.own_tgid;
}

// Whether the scrubber's process itself is at it, or one that it makes calls by (apart/calls.rs).
static __always_inline int from_itself(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();

	return shared.own_tgid && !(task->flags & PF_KTHREAD) &&
	       (bpf_get_current_pid_tgid() >> 32 == shared.own_tgid || (__u32)task->real_parent->tgid == shared.own_tgid);
}

#include "waiting.bpf.h"

static __always_inline void tell(const struct open_request *open, __u64 now, enum kind kind)
{
	struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	__u64 wake = BPF_RB_NO_WAKEUP;

	if (!event) {
		__sync_fetch_and_add(&shared.lost_events, 1);
		return;
	}
	event->time = now;
	event->arrival = open->arrival;
	event->issue = open->issue;
	event->sector = open->sector;
	event->bytes = open->bytes;
	event->kind = kind;
	event->op = open->op;
	event->own = open->own;
	event->untold = 0;
	event->responses = 0;
	event->others = UNSAID;
	event->pad = 0;
	if (kind == COMPLETION && !open->own) {
		if (shared.untold) {
			__u64 untold = __sync_lock_test_and_set(&shared.untold, 0);

			event->untold = untold >> UNTOLD_BITS;
			event->responses = untold & ((1ULL << UNTOLD_BITS) - 1);
		}
		if (!shared.tell_each)
			event->others = shared.foreground_open > 0 ? SOME : NONE;
	}
	// User space looks in when it may do something. The foreground wakes nobody up: that would take the processor from whoever serves it.
	// Only a ring that fills does.
	if (!settings.recording && bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) > settings.wake_at)
		wake = BPF_RB_FORCE_WAKEUP;
	bpf_ringbuf_submit(event, wake);
}

static __always_inline int has_place(__u8 op)
{
	return op != REQ_OP_DRV_IN && op != REQ_OP_DRV_OUT;
}

// Whether a write comes of what we have done: metadata of a file system that a kernel thread writes in its own time, behind a save of ours,
// and nobody waits for; or what the kernel has to write before a direct read of ours.
static __always_inline int follows_ours(const struct open_request *open, __u32 flags)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();

	if (open->op != REQ_OP_WRITE)
		return 0;
	if (task->flags & PF_KTHREAD)
		return (flags & (REQ_META | REQ_SYNC)) == REQ_META && bpf_ktime_get_ns() < shared.own_late &&
		       shared.own_late_writes > 0 && __sync_fetch_and_add(&shared.own_late_writes, -1) > 0;
	return shared.own_range && from_itself();
}

static __always_inline int ours(const struct open_request *open, __u32 flags)
{
	int named = 0;

	if (open->op == REQ_OP_READ) {
		__u64 range = *(volatile __u64 *)&shared.own_range;
		__u64 begin = range >> LENGTH_BITS, length = range & ((1 << LENGTH_BITS) - 1);
		__u32 unit = settings.own_unit;

		named = open->sector >= begin << unit && open->sector + open->bytes / 512 <= (begin + length) << unit;
		if (!named && shared.own_lookups)
			return from_itself();
	} else if (!has_place(open->op)) {
		named = shared.own_command;
	} else {
		named = shared.own_writes || follows_ours(open, flags);
	}
	return named && !from_another();
}

#include "works.bpf.h"

static __always_inline int excepted(const struct open_request *open)
{
	__u64 end = open->sector + open->bytes / 512;

	if (!settings.except_end)
		return 0;
	return open->op == REQ_OP_FLUSH || (open->sector >= settings.except_begin && end <= settings.except_end);
}

static __always_inline struct bucket *bucket_of(__u64 address)
{
	// Fibonacci hashing (Knuth, volume 3, section 6.4). The verifier allows no other arithmetic with an address than this.
	__u32 key = (__u32)address * 0x9e3779b1U >> (32 - BUCKETS_LOG2);

	return bpf_map_lookup_elem(&requests, &key);
}

// The place of this address, or PLACES; in `free` one of none, or PLACES.
static __always_inline __u32 find(struct bucket *bucket, __u64 address, __u32 *free)
{
	__u32 place = PLACES;

	*free = PLACES;
	// Without a way out of the middle, so that the verifier has one path to follow.
	#pragma unroll
	for (__u32 each = 0; each < PLACES; each++) {
		__u64 there = bucket->address[each];

		place = there == address ? each : place;
		*free = there ? *free : each;
	}
	return place;
}

// Forgets a request; whether this did it. User space forgets what it takes for lost: whoever forgets a request counts it.
static __always_inline int forget(struct bucket *bucket, __u32 place, __u64 address, int own)
{
	// Whoever has the place next is not to be taken for as old before it has written its time.
	bucket->request[place].arrival = NO_TIME;
	if (__sync_val_compare_and_swap(&bucket->address[place], address, 0) != address)
		return 0;
	if (!own)
		__sync_fetch_and_add(&shared.foreground_open, -1);
	return 1;
}

// Keeps what has come, in this place if it is still free, and tells of it.
static __always_inline int came(struct bucket *bucket, __u32 free, __u64 address, const struct open_request *open, __u64 now)
{
	__s64 before = 0;

	if (free >= PLACES || __sync_val_compare_and_swap(&bucket->address[free], 0, address)) {
		// Another processor was faster; not twice.
		find(bucket, address, &free);
		if (free >= PLACES || __sync_val_compare_and_swap(&bucket->address[free], 0, address)) {
			__sync_fetch_and_add(&shared.lost_events, 1);
			return 0;
		}
	}
	bucket->request[free] = *open;
	if (!open->own)
		before = __sync_fetch_and_add(&shared.foreground_open, 1);
	if (before >= settings.crowd - settings.crowd / 4 && !shared.crowd_seen)
		shared.crowd_seen = 1;
	if (!settings.recording && (open->own || shared.tell_each || before <= 0))
		tell(open, now, ARRIVAL);
	return 0;
}

static __always_inline int seen(struct request *rq, int issued)
{
	__u64 address = (__u64)rq;
	struct open_request open = {}, *known;
	struct bucket *bucket;
	__u32 place, free;
	__u64 now;

	if (!watched(rq))
		return 0;
	bucket = bucket_of(address);
	if (!bucket)
		return 0;
	place = find(bucket, address, &free);
	if (place < PLACES) {
		known = &bucket->request[place];
		if (!(known->issue && has_place(known->op) && known->sector != rq->__sector)) {
			if (issued && !known->issue)
				known->issue = bpf_ktime_get_ns();
			return 0;
		}
		// The kernel has begun another request in the same memory: that the one before it completed was missed. A driver that could
		// not take a request gets it once more as it was.
		if (forget(bucket, place, address, known->own))
			__sync_fetch_and_add(&shared.lost_events, 1);
		free = place;
	}
	now = bpf_ktime_get_ns();
	open.arrival = submitted(rq, now);
	open.issue = issued ? now : 0;
	open.op = rq->cmd_flags & REQ_OP_MASK;
	// Commands of the disk's own have no place.
	open.sector = has_place(open.op) ? rq->__sector : 0;
	open.bytes = rq->__data_len;
	if (excepted(&open))
		return 0;
	open.own = whose(&open, rq->cmd_flags, rq->bio);
	return came(bucket, free, address, &open, now);
}

// Whether a completion is kept untold: the disk has others to do for the foreground, and user space need not know.
static __always_inline int untold(const struct open_request *open, __u64 now)
{
	__u64 response = now - open->arrival;

	if (settings.recording || shared.tell_each || open->own || shared.foreground_open <= 0 ||
	    shared.untold >> UNTOLD_BITS >= MOST_UNTOLD || response > LONGEST_UNTOLD)
		return 0;
	__sync_fetch_and_add(&shared.untold, (1ULL << UNTOLD_BITS) + response);
	return 1;
}

// What was kept under this address is over.
static __always_inline int ended(__u64 address)
{
	struct open_request open;
	struct bucket *bucket;
	__u32 place, free;
	__u64 now;

	bucket = bucket_of(address);
	if (!bucket)
		return 0;
	place = find(bucket, address, &free);
	if (place >= PLACES)
		return 0;
	open = bucket->request[place];
	if (!forget(bucket, place, address, open.own))
		return 0;
	now = bpf_ktime_get_ns();
	if (!untold(&open, now))
		tell(&open, now, COMPLETION);
	return 0;
}

static __always_inline int gone(struct request *rq)
{
	return watched(rq) ? ended((__u64)rq) : 0;
}

// Run once by the scrubber, whose process number in its own name space may be another.
SEC("syscall")
int introduce(void *ctx)
{
	shared.own_tgid = bpf_get_current_pid_tgid() >> 32;
	return 0;
}

// A request merged into its neighbour ends here; the neighbour carries its bytes.
SEC("tp_btf/block_rq_merge")
int BPF_PROG(on_merge, struct request *rq)
{
	return gone(rq);
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_complete, struct request *rq, __u8 error, unsigned int nr_bytes)
{
	// Some drivers complete a request piece by piece.
	if (nr_bytes < rq->__data_len)
		return 0;
	return gone(rq);
}

SEC("tp_btf/block_rq_insert")
int BPF_PROG(on_insert, struct request *rq)
{
	return seen(rq, 0);
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_issue, struct request *rq)
{
	return seen(rq, 1);
}

// Attached only where there are works of idlewise whose flushes are not those of others.
SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_sync, struct bio *bio)
{
	if (watched_bio(bio))
		note_sync(bio);
	return 0;
}

#include "bios.bpf.h"
