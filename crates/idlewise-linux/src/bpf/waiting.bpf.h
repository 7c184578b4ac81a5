// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Who waits for a place in the disk's queue. A thread whose read or write finds all places taken sleeps before there is a request
// that could be inserted or issued. So each thread is noted when it submits, and forgotten when its last piece has got a place or was merged
// into a request that has one. What it waited until then belongs to the request, which is later known by its first bio.
//
// While few places are taken nobody can be waiting, and none of this costs more than a look; where a disk has many, these programs are not
// even attached then.

// A thread that has submitted.
struct waiter {
	__u64 since;
	// What it has submitted, to be known by when it fails.
	__u64 bio;
	// The block layer may have split it.
	__u64 pieces;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct waiter);
} waiters SEC(".maps");

// When a bio was submitted that had to wait. Most are looked up a moment later.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, __u64);
} late SEC(".maps");

// What a thread submits at once, it does within such a time; no wait is as short as the other.
#define AT_ONCE 1000000ULL
#define NO_WAIT 20000ULL
// For so long after a wait one is looked for behind each request.
#define LATELY 10000000000LL

static __always_inline int watched_bio(struct bio *bio)
{
	return watched_disk(bio->bi_bdev->bd_disk);
}

// Whether a place may be hard to get.
static __always_inline int crowded(void)
{
	return shared.own_range || shared.own_command || shared.foreground_open >= settings.crowd;
}

static __always_inline int lately(__u64 now)
{
	// Another processor may have set it a moment later.
	return shared.late_at && (__s64)(now - shared.late_at) < LATELY;
}

// Whether this thread may be waiting for a place in the watched disk's queue, and since when.
static __always_inline struct waiter *waiting(struct bio *bio, __u32 thread)
{
	return shared.waiting && watched_bio(bio) ? bpf_map_lookup_elem(&waiters, &thread) : 0;
}

// A piece of what the thread submitted waits no more.
static __always_inline void waits_no_more(struct waiter *waiter, __u32 thread)
{
	if (waiter->pieces > 1)
		waiter->pieces--;
	else if (!bpf_map_delete_elem(&waiters, &thread))
		__sync_fetch_and_add(&shared.waiting, -1);
}

// When the request was submitted, where that was long before now.
static __always_inline __u64 submitted(struct request *rq, __u64 now)
{
	__u64 bio = (__u64)rq->bio, *known, since;

	if (!lately(now))
		return now;
	known = bpf_map_lookup_elem(&late, &bio);
	if (!known)
		return now;
	since = *known;
	// Another bio may be in the same memory next.
	bpf_map_delete_elem(&late, &bio);
	return since < now ? since : now;
}

// It failed before it had a place: the caller would not wait.
SEC("tp_btf/block_bio_complete")
int BPF_PROG(on_failure, struct request_queue *q, struct bio *bio)
{
	__u32 thread = bpf_get_current_pid_tgid();
	struct waiter *waiter;

	if (!shared.waiting)
		return 0;
	waiter = bpf_map_lookup_elem(&waiters, &thread);
	if (waiter && waiter->bio == (__u64)bio) {
		waiter->pieces = 1;
		waits_no_more(waiter, thread);
	}
	return 0;
}

static __always_inline int merged(struct bio *bio)
{
	__u32 thread = bpf_get_current_pid_tgid();
	struct waiter *waiter = waiting(bio, thread);

	if (waiter)
		waits_no_more(waiter, thread);
	return 0;
}

SEC("tp_btf/block_bio_backmerge")
int BPF_PROG(on_back_merge, struct bio *bio)
{
	return merged(bio);
}

SEC("tp_btf/block_bio_frontmerge")
int BPF_PROG(on_front_merge, struct bio *bio)
{
	return merged(bio);
}

SEC("tp_btf/block_getrq")
int BPF_PROG(on_place, struct bio *bio)
{
	__u32 thread = bpf_get_current_pid_tgid();
	__u64 key = (__u64)bio, now, since;
	struct waiter *waiter;

	if (!(shared.waiting || shared.late_at) || !watched_bio(bio))
		return 0;
	now = since = bpf_ktime_get_ns();
	waiter = bpf_map_lookup_elem(&waiters, &thread);
	if (waiter) {
		since = waiter->since;
		waits_no_more(waiter, thread);
	}
	if (now - since > NO_WAIT) {
		shared.late_at = now;
		bpf_map_update_elem(&late, &key, &since, BPF_ANY);
	} else if (lately(now)) {
		// Another bio was in the same memory.
		bpf_map_delete_elem(&late, &key);
	}
	return 0;
}

SEC("tp_btf/block_split")
int BPF_PROG(on_split, struct bio *bio)
{
	struct waiter *waiter = waiting(bio, bpf_get_current_pid_tgid());

	if (waiter)
		waiter->pieces++;
	return 0;
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_submit, struct bio *bio)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct waiter one = {.bio = (__u64)bio, .pieces = 1}, *waiter;
	__u32 thread = id, op = bio->bi_opf & REQ_OP_MASK;

	// Others are merged or discarded without a word.
	if (!(shared.waiting || crowded()) || !watched_bio(bio) || from_itself() || op > REQ_OP_WRITE)
		return 0;
	if (settings.group && of_group(bio))
		return 0;
	one.since = bpf_ktime_get_ns();
	waiter = bpf_map_lookup_elem(&waiters, &thread);
	if (!waiter) {
		if (!bpf_map_update_elem(&waiters, &thread, &one, BPF_NOEXIST))
			__sync_fetch_and_add(&shared.waiting, 1);
	} else if (one.since - waiter->since < AT_ONCE) {
		waiter->pieces++;
	} else {
		*waiter = one;
	}
	return 0;
}
