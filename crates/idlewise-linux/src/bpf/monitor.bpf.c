// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Watches the requests of one disk on the block tracepoints and tells user space when each one arrives and completes.
// A request is there from the first time it is seen, inserted into the scheduler or issued to the driver, until its last
// byte completes; it arrived when it was submitted, which may be earlier. The scrubber's own requests are those that lie in the
// range which it announces before it issues them, commands of the disk's own when it announces one, and writes while it saves its
// checkpoint on this disk; none of them comes from another process.
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

#define SLOTS_LOG2 14
#define SLOTS (1 << SLOTS_LOG2)
// A request is in one of so many slots behind the one that its address leads to.
#define PROBES 16
#define NO_TIME ~0ULL
#define LENGTH_BITS 20
#define RING_BYTES (4 * 1024 * 1024)

enum kind { ARRIVAL = 0, COMPLETION = 1 };
enum asleep { AWAKE = 0, UNTIL_BUSY = 1, UNTIL_IDLE = 2 };

// What user space reads from the ring.
struct event {
	__u64 time;    // CLOCK_MONOTONIC, ns
	__u64 arrival; // of the request: when it was submitted
	__u64 issue;   // to the driver; zero before it
	__u64 sector;  // first, of 512 bytes, on the whole disk
	__u32 bytes;
	__u8 kind;
	__u8 op; // REQ_OP_*
	__u8 own;
	__u8 pad;
};

// A place for one request that is there: whoever writes its address where there was none has it, and whoever writes none there
// again has counted it.
struct open_request {
	__u64 address;
	__u64 arrival;
	__u64 issue;
	__u64 sector;
	__u32 bytes;
	__u8 op;
	__u8 own;
	__u8 pad[2];
};

// A table of our own: the kernel's hash table takes microseconds for what takes a few nanoseconds here.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, struct open_request);
} requests SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} events SEC(".maps");

// Set before loading; all there is in .rodata.
const volatile struct {
	__s32 disk_major;
	__s32 disk_minor;
	// Tell of completions only, and wake nobody up: the recorder looks in now and then.
	__u32 recording;
	// So many bytes in the ring, and user space is woken.
	__u32 wake_at;
	// With so many requests of others there a place in the disk's queue may be hard to get.
	__u32 crowd;
} settings;

// What both sides change while it runs; all there is in .bss.
struct {
	// Written by user space: the range of its own requests in sectors, first and length in one word, which is read and
	// written at once; zero when there are none.
	__u64 own_range;
	// Read by user space.
	__s64 foreground_open;
	__u64 lost_events;
	// Written by user space: one command of its own is in service, which has no place.
	__u32 own_command;
	// Written by user space: so many files of its own are being saved on this disk.
	__u32 own_writes;
	// The scrubber's process, as the kernel counts them; zero before it has introduced itself.
	__u32 own_tgid;
	// Written by both sides: user space sleeps until the foreground comes, or has gone.
	__u32 asleep;
	// Threads in the table of those that may be waiting for a place; both sides forget them.
	__s64 waiting;
	// When one was last seen to have waited.
	__u64 late_at;
} shared;

static __always_inline int watched_disk(struct gendisk *disk)
{
	return disk && disk->major == settings.disk_major && disk->first_minor == settings.disk_minor;
}

static __always_inline int watched(struct request *rq)
{
	return watched_disk(rq->q->disk);
}

#include "waiting.bpf.h"

static __always_inline int awaited(enum kind kind)
{
	if (shared.asleep == UNTIL_IDLE)
		return kind == COMPLETION && shared.foreground_open <= 0 && shared.waiting <= 0;
	return shared.asleep == UNTIL_BUSY && kind == ARRIVAL;
}

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
	event->pad = 0;
	// User space looks in when it may do something; between, only what it waits for or a ring that fills wakes it.
	if (!settings.recording) {
		if (!open->own && awaited(kind)) {
			shared.asleep = AWAKE;
			wake = BPF_RB_FORCE_WAKEUP;
		} else if (bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) > settings.wake_at) {
			wake = BPF_RB_FORCE_WAKEUP;
		}
	}
	bpf_ringbuf_submit(event, wake);
}

// Whether another process is at it. Kernel threads issue requests for anyone.
static __always_inline int from_another(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();

	return shared.own_tgid && !(task->flags & PF_KTHREAD) && bpf_get_current_pid_tgid() >> 32 != shared.own_tgid;
}

static __always_inline int has_place(__u8 op)
{
	return op != REQ_OP_DRV_IN && op != REQ_OP_DRV_OUT;
}

static __always_inline int ours(const struct open_request *open)
{
	int named = 0;

	if (open->op == REQ_OP_READ) {
		__u64 range = *(volatile __u64 *)&shared.own_range;
		__u64 begin = range >> LENGTH_BITS, length = range & ((1 << LENGTH_BITS) - 1);

		named = open->sector >= begin && open->sector + open->bytes / 512 <= begin + length;
	} else if (!has_place(open->op)) {
		named = shared.own_command;
	} else {
		named = shared.own_writes;
	}
	return named && !from_another();
}

static __always_inline struct open_request *slot(__u64 address, __u32 probe)
{
	// Fibonacci hashing (Knuth, volume 3, section 6.4). The verifier allows no other arithmetic with an address than this.
	__u32 key = (((__u32)address * 0x9e3779b1U >> (32 - SLOTS_LOG2)) + probe) & (SLOTS - 1);

	return bpf_map_lookup_elem(&requests, &key);
}

// The request at this address, if it is known.
static __always_inline struct open_request *find(__u64 address)
{
	for (__u32 probe = 0; probe < PROBES; probe++) {
		struct open_request *open = slot(address, probe);

		if (open && open->address == address)
			return open;
	}
	return 0;
}

// A free place for the request at this address.
static __always_inline struct open_request *take(__u64 address)
{
	for (__u32 probe = 0; probe < PROBES; probe++) {
		struct open_request *open = slot(address, probe);

		if (open && !open->address && !__sync_val_compare_and_swap(&open->address, 0, address))
			return open;
	}
	return 0;
}

// Forgets a request; whether this did it. User space forgets what it takes for lost: whoever forgets a request counts it.
static __always_inline int forget(struct open_request *open, __u64 address, int own)
{
	// Whoever has the place next is not to be taken for as old before it has written its time.
	open->arrival = NO_TIME;
	if (__sync_val_compare_and_swap(&open->address, address, 0) != address)
		return 0;
	if (!own)
		__sync_fetch_and_add(&shared.foreground_open, -1);
	return 1;
}

static __always_inline int seen(struct request *rq, int issued)
{
	__u64 address = (__u64)rq;
	struct open_request open = {}, *known;
	__u64 now;

	if (!watched(rq))
		return 0;
	known = find(address);
	// The kernel has begun another request in the same memory: that the one before it completed was missed. A driver that could not
	// take a request gets it once more as it was.
	if (known && known->issue && has_place(known->op) && known->sector != rq->__sector) {
		if (forget(known, address, known->own))
			__sync_fetch_and_add(&shared.lost_events, 1);
		known = 0;
	}
	if (known) {
		if (issued && !known->issue)
			known->issue = bpf_ktime_get_ns();
		return 0;
	}
	now = bpf_ktime_get_ns();
	open.arrival = submitted(rq, now);
	open.issue = issued ? now : 0;
	open.op = rq->cmd_flags & REQ_OP_MASK;
	// Commands of the disk's own have no place.
	open.sector = has_place(open.op) ? rq->__sector : 0;
	open.bytes = rq->__data_len;
	open.own = ours(&open);
	known = take(address);
	if (!known) {
		__sync_fetch_and_add(&shared.lost_events, 1);
		return 0;
	}
	known->issue = open.issue;
	known->sector = open.sector;
	known->bytes = open.bytes;
	known->op = open.op;
	known->own = open.own;
	known->arrival = open.arrival;
	if (!open.own)
		__sync_fetch_and_add(&shared.foreground_open, 1);
	if (!settings.recording)
		tell(&open, now, ARRIVAL);
	return 0;
}

static __always_inline int gone(struct request *rq)
{
	__u64 address = (__u64)rq;
	struct open_request open, *known;

	if (!watched(rq))
		return 0;
	known = find(address);
	if (!known)
		return 0;
	open = *known;
	if (forget(known, address, open.own))
		tell(&open, bpf_ktime_get_ns(), COMPLETION);
	return 0;
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
