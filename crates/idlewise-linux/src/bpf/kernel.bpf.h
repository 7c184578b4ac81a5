// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The kernel's structures and constants, as far as they are used; offsets come from its BTF.

struct gendisk {
	int major;
	int first_minor;
} __attribute__((preserve_access_index));

struct block_device {
	struct gendisk *bd_disk;
} __attribute__((preserve_access_index));

struct bio {
	struct block_device *bi_bdev;
	unsigned int bi_opf;
} __attribute__((preserve_access_index));

struct request_queue {
	struct gendisk *disk;
} __attribute__((preserve_access_index));

struct request {
	struct request_queue *q;
	struct bio *bio;
	unsigned int cmd_flags;
	unsigned int __data_len;
	__u64 __sector;
} __attribute__((preserve_access_index));

struct task_struct {
	unsigned int flags;
} __attribute__((preserve_access_index));

#define PF_KTHREAD 0x00200000
#define REQ_OP_MASK 0xff
#define REQ_OP_READ 0
#define REQ_OP_WRITE 1
#define REQ_OP_DRV_IN 34
#define REQ_OP_DRV_OUT 35
