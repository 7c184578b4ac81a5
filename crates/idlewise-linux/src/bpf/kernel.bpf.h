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

struct kernfs_node {
	__u64 id;
} __attribute__((preserve_access_index));

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
} __attribute__((preserve_access_index));

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	struct cgroup_root *root;
} __attribute__((preserve_access_index));

struct css_set {
	struct cgroup *dfl_cgrp;
} __attribute__((preserve_access_index));

struct blkcg {
	struct cgroup_subsys_state css;
} __attribute__((preserve_access_index));

struct blkcg_gq {
	struct blkcg *blkcg;
} __attribute__((preserve_access_index));

struct bvec_iter {
	__u64 bi_sector;
	unsigned int bi_size;
} __attribute__((preserve_access_index));

struct bio {
	struct block_device *bi_bdev;
	struct bvec_iter bi_iter;
	struct blkcg_gq *bi_blkg;
	unsigned int bi_opf;
	__u8 bi_status;
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
	int tgid;
	struct task_struct *real_parent;
	struct css_set *cgroups;
} __attribute__((preserve_access_index));

#define PF_KTHREAD 0x00200000
#define REQ_OP_MASK 0xff
#define REQ_OP_READ 0
#define REQ_OP_WRITE 1
#define REQ_OP_FLUSH 2
#define REQ_OP_DRV_IN 34
#define REQ_OP_DRV_OUT 35
#define REQ_SYNC (1U << 11)
#define REQ_META (1U << 12)
#define REQ_FUA (1U << 17)
#define REQ_PREFLUSH (1U << 18)
