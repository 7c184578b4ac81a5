// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A volume that is stacked on other disks passes on bios: each is there from when it is submitted until its last piece has come back, as
// its user sees it. A piece that is split off has not been submitted by anyone and is not in the table. A driver may point a bio to the
// disk below it, so that it is known by its address alone when it comes back.

SEC("tp_btf/block_bio_complete")
int BPF_PROG(on_bio_end, struct request_queue *queue, struct bio *bio)
{
	return ended((__u64)bio);
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_bio, struct bio *bio)
{
	__u64 address = (__u64)bio, now;
	struct open_request open = {};
	struct bucket *bucket;
	__u32 place, free;

	if (!watched_bio(bio))
		return 0;
	bucket = bucket_of(address);
	if (!bucket)
		return 0;
	place = find(bucket, address, &free);
	if (place < PLACES) {
		// That the one before it in the same memory came back was missed.
		if (forget(bucket, place, address, bucket->request[place].own))
			__sync_fetch_and_add(&shared.lost_events, 1);
		free = place;
	}
	note_sync(bio);
	now = bpf_ktime_get_ns();
	open.arrival = now;
	open.op = bio->bi_opf & REQ_OP_MASK;
	open.sector = bio->bi_iter.bi_sector;
	open.bytes = bio->bi_iter.bi_size;
	open.own = whose(&open, bio->bi_opf, bio);
	return came(bucket, free, address, &open, now);
}
