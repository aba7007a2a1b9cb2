// Kernels that combine many small operations of a step. A row is one new position in one sequence. One launch handles
// the rows of all sequences, so the number of launches does not depend on the number of sequences.

// Maps rows to sequences. `table` contains in this order: the sequence of each row, the position of each row, the
// capacity of each sequence in positions, and the addresses of the keys and values for each layer and sequence.
struct Rows {
    const long long* table;
    int rows, sequences, layer;
};

// The key-value cache of one sequence in one layer.
struct Cache {
    float* keys;
    float* values;
    long long room;
};

__device__ int position_of(Rows all, int row) { return (int)all.table[all.rows + row]; }

__device__ Cache cache_of(Rows all, int row) {
    long long sequence = all.table[row];
    const long long* rooms = all.table + 2 * all.rows;
    const long long* addresses = rooms + all.sequences + 2 * ((long long)all.layer * all.sequences + sequence);
    return {(float*)addresses[0], (float*)addresses[1], rooms[sequence]};
}

// Adds the biases, applies the rotary embedding to queries and keys, and stores keys and values in the caches. Grid:
// (rows, heads + 2 * key_heads). Threads: half the head size. A bias may be null.
extern "C" __global__ void place(
    Rows all, float* queries, const float* keys, const float* values, const float* query_bias, const float* key_bias,
    const float* value_bias, const float* cosines, const float* sines, int heads, int key_heads, int head, int in_pairs) {
    int row = blockIdx.x, index = blockIdx.y, i = threadIdx.x, half = head / 2;
    int position = position_of(all, row);
    int a = in_pairs ? 2 * i : i, b = in_pairs ? 2 * i + 1 : i + half;
    const float *from, *bias;
    float* to;
    bool is_turned = true;
    if (index < heads) {
        to = queries + ((long long)row * heads + index) * head;
        from = to;
        bias = query_bias;
    } else {
        Cache cache = cache_of(all, row);
        index -= heads;
        is_turned = index < key_heads;
        bias = is_turned ? key_bias : value_bias;
        if (!is_turned) index -= key_heads;
        from = (is_turned ? keys : values) + ((long long)row * key_heads + index) * head;
        to = (is_turned ? cache.keys : cache.values) + (index * cache.room + position) * head;
    }
    float x = from[a], y = from[b];
    if (bias) {
        x += bias[index * head + a];
        y += bias[index * head + b];
    }
    if (is_turned) {
        float cosine = cosines[(long long)position * half + i], sine = sines[(long long)position * half + i];
        float turned = x * cosine - y * sine;
        y = x * sine + y * cosine;
        x = turned;
    }
    to[a] = x;
    to[b] = y;
}

constexpr int THREADS = 128;
// Number of threads that compute one dot product of a query and a key.
constexpr int LANES = 8;

// Computes the attention of each row over its own sequence, for GROUP queries that share a key head and the positions
// of one part. Grid: (rows, heads / GROUP, parts). If there is one part, the result is written to `out`. Otherwise, the
// sum, largest score and total weight of each part are written to `partial`, as input for `combine`.
template <int GROUP>
__device__ void attend(
    Rows all, const float* queries, float* out, float* partial, int heads, int key_heads, int head, int length,
    float scale) {
    extern __shared__ float4 shared[];
    float* query = (float*)shared;
    float* sums = query + GROUP * head;
    float* weights = sums + GROUP * head;
    __shared__ float largest[GROUP], totals[GROUP];

    int row = blockIdx.x, first = blockIdx.y * GROUP, part = blockIdx.z, parts = gridDim.z, thread = threadIdx.x;
    int from = part * length, to = min(from + length, position_of(all, row) + 1);
    const float* own = queries + ((long long)row * heads + first) * head;
    float* given = partial + (((long long)row * heads + first) * parts + part) * (head + 2);
    long long stride = (long long)parts * (head + 2);
    if (from >= to) {
        for (int i = thread; i < GROUP * (head + 2); i += THREADS) {
            int at = i % (head + 2);
            given[i / (head + 2) * stride + at] = at == head ? -INFINITY : 0;
        }
        return;
    }
    Cache cache = cache_of(all, row);
    long long start = first / (heads / key_heads) * cache.room;
    const float* keys = cache.keys + start * head;
    const float* values = cache.values + start * head;

    for (int i = thread; i < GROUP * head; i += THREADS) query[i] = own[i] * scale;
    __syncthreads();
    int lane = thread % LANES;
    for (int base = from; base < to; base += THREADS / LANES) {
        int position = base + thread / LANES;
        float products[GROUP] = {};
        if (position < to) {
            for (int at = 4 * lane; at < head; at += 4 * LANES) {
                float4 key = *(const float4*)(keys + (long long)position * head + at);
#pragma unroll
                for (int g = 0; g < GROUP; g++) {
                    float4 q = *(const float4*)(query + g * head + at);
                    products[g] += q.x * key.x + q.y * key.y + q.z * key.z + q.w * key.w;
                }
            }
        }
#pragma unroll
        for (int g = 0; g < GROUP; g++) {
            for (int other = LANES / 2; other > 0; other /= 2)
                products[g] += __shfl_xor_sync(0xffffffff, products[g], other);
            if (lane == 0 && position < to) weights[g * length + position - from] = products[g];
        }
    }
    __syncthreads();

    for (int g = thread / 32; g < GROUP; g += THREADS / 32) {
        float* scores = weights + g * length;
        float top = -INFINITY, total = 0;
        for (int i = thread % 32; i < to - from; i += 32) top = fmaxf(top, scores[i]);
        for (int other = 16; other > 0; other /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, other));
        for (int i = thread % 32; i < to - from; i += 32) {
            scores[i] = __expf(scores[i] - top);
            total += scores[i];
        }
        for (int other = 16; other > 0; other /= 2) total += __shfl_xor_sync(0xffffffff, total, other);
        if (thread % 32 == 0) {
            largest[g] = top;
            totals[g] = total;
        }
    }
    __syncthreads();

    int quarters = head / 4, teams = THREADS / quarters, team = thread / quarters, at = thread % quarters * 4;
    float4 mixed[GROUP] = {};
    if (team < teams) {
#pragma unroll 4
        for (int position = from + team; position < to; position += teams) {
            float4 value = *(const float4*)(values + (long long)position * head + at);
#pragma unroll
            for (int g = 0; g < GROUP; g++) {
                float weight = weights[g * length + position - from];
                mixed[g].x += weight * value.x;
                mixed[g].y += weight * value.y;
                mixed[g].z += weight * value.z;
                mixed[g].w += weight * value.w;
            }
        }
    }
    // The teams add their sums in a fixed order, so that rounding does not vary.
    for (int turn = 0; turn < teams; turn++) {
        if (team == turn) {
#pragma unroll
            for (int g = 0; g < GROUP; g++) {
                float4* sum = (float4*)(sums + g * head + at);
                float4 before = turn == 0 ? float4{} : *sum;
                *sum = {before.x + mixed[g].x, before.y + mixed[g].y, before.z + mixed[g].z, before.w + mixed[g].w};
            }
        }
        __syncthreads();
    }
    if (parts == 1) {
        float* target = out + ((long long)row * heads + first) * head;
        for (int i = thread; i < GROUP * head; i += THREADS) target[i] = sums[i] / totals[i / head];
        return;
    }
    for (int i = thread; i < GROUP * head; i += THREADS) given[i / head * stride + i % head] = sums[i];
    if (thread < GROUP) {
        given[thread * stride + head] = largest[thread];
        given[thread * stride + head + 1] = totals[thread];
    }
}

#define ATTEND(GROUP)                                                                                                \
    extern "C" __global__ void __launch_bounds__(THREADS) attend_##GROUP(                                            \
        Rows all, const float* queries, float* out, float* partial, int heads, int key_heads, int head, int length,  \
        float scale) {                                                                                               \
        attend<GROUP>(all, queries, out, partial, heads, key_heads, head, length, scale);                            \
    }
ATTEND(1)
ATTEND(2)
ATTEND(3)
ATTEND(4)
ATTEND(5)
ATTEND(6)
ATTEND(7)
ATTEND(8)

// Combines the parts of each query. Grid: rows * heads. Threads: the head size.
extern "C" __global__ void combine(const float* partial, float* out, int parts, int head) {
    const float* given = partial + (long long)blockIdx.x * parts * (head + 2);
    float top = -INFINITY, total = 0, sum = 0;
    for (int part = 0; part < parts; part++) top = fmaxf(top, given[part * (head + 2) + head]);
    for (int part = 0; part < parts; part++) {
        const float* one = given + part * (head + 2);
        float weight = __expf(one[head] - top);
        total += weight * one[head + 1];
        sum += weight * one[threadIdx.x];
    }
    out[(long long)blockIdx.x * head + threadIdx.x] = sum / total;
}

// Computes `silu(gate) * up` and stores it in `gate`.
extern "C" __global__ void gate(float* gates, const float* ups, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) gates[i] = gates[i] / (1 + __expf(-gates[i])) * ups[i];
}

// Adds `change` to `x` in place, and stores the RMS-normalized sum multiplied by `weight` in `out`. `change` may be
// null. Grid: rows. Threads: a multiple of 32.
extern "C" __global__ void add_and_norm(
    float* x, const float* change, const float* weight, float* out, int width, float epsilon) {
    __shared__ float squares[32];
    float* row = x + (long long)blockIdx.x * width;
    float sum = 0;
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
        float value = row[i];
        if (change) {
            value += change[(long long)blockIdx.x * width + i];
            row[i] = value;
        }
        sum += value * value;
    }
    for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(0xffffffff, sum, other);
    if (threadIdx.x % 32 == 0) squares[threadIdx.x / 32] = sum;
    __syncthreads();
    float total = 0;
    for (int warp = 0; warp < blockDim.x / 32; warp++) total += squares[warp];
    float factor = rsqrtf(total / width + epsilon);
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        out[(long long)blockIdx.x * width + i] = row[i] * factor * weight[i];
}
