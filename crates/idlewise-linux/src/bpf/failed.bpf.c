// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Tells user space of each read of some devices that fails, whoever has asked for it and whatever lies below: the kernel's log names ten in
// five seconds, and none of what is stacked on other devices. Disks fail requests. Of what is stacked on disks each read is noted when it is
// submitted: a driver may move a bio on, and point it elsewhere, while it is at it.

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#include "kernel.bpf.h"

#define MINOR_BITS 20

struct read {
	__u64 sector; // on the whole disk
	__u32 bytes;
	__u32 disk; // as the kernel numbers it
};

enum kind { WITH_REQUESTS = 0, STACKED = 1 };

// Written by user space: the disks, and what is stacked on disks; each with its kind.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u8);
} disks SEC(".maps");

// By the address of the bio.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, struct read);
} reads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1024 * 1024);
} failures SEC(".maps");

// Failures that user space could not be told of.
__u64 lost;

static __always_inline void tell(const struct read *read)
{
	struct read *failure = bpf_ringbuf_reserve(&failures, sizeof(*failure), 0);

	if (failure) {
		*failure = *read;
		bpf_ringbuf_submit(failure, 0);
	} else {
		__sync_fetch_and_add(&lost, 1);
	}
}

static __always_inline __u32 number_of(struct gendisk *disk)
{
	return disk->major << MINOR_BITS | disk->first_minor;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_request_end, struct request *rq, __u8 error, unsigned int nr_bytes)
{
	struct gendisk *disk = rq->q->disk;
	struct read read = {};

	if (!error || (rq->cmd_flags & REQ_OP_MASK) != REQ_OP_READ || !disk)
		return 0;
	read.disk = number_of(disk);
	if (!bpf_map_lookup_elem(&disks, &read.disk))
		return 0;
	read.sector = rq->__sector;
	read.bytes = nr_bytes;
	tell(&read);
	return 0;
}

SEC("tp_btf/block_bio_complete")
int BPF_PROG(on_end, struct request_queue *queue, struct bio *bio)
{
	__u64 address = (__u64)bio;
	struct read *read = bpf_map_lookup_elem(&reads, &address);

	if (!read)
		return 0;
	if (bio->bi_status)
		tell(read);
	bpf_map_delete_elem(&reads, &address);
	return 0;
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_begin, struct bio *bio)
{
	__u64 address = (__u64)bio;
	struct read read = {};
	__u8 *kind;

	read.disk = number_of(bio->bi_bdev->bd_disk);
	kind = bpf_map_lookup_elem(&disks, &read.disk);
	if ((bio->bi_opf & REQ_OP_MASK) != REQ_OP_READ || !kind || *kind != STACKED)
		return 0;
	read.sector = bio->bi_iter.bi_sector;
	read.bytes = bio->bi_iter.bi_size;
	bpf_map_update_elem(&reads, &address, &read, BPF_ANY);
	return 0;
}
