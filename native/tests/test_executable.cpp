#include <bit>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.h"
#include "executable.h"
#include "fake_blas.h"
#include "profile.h"
#include "threadpool.h"

namespace jato::test {
namespace {

using Floats = std::vector<float>;

// --- kernels ---

void add_kernel(const KernelArgs* args, int64_t begin, int64_t end) {
  const float* a = static_cast<const float*>(args->buffers[0]);
  const float* b = static_cast<const float*>(args->buffers[1]);
  float* c = static_cast<float*>(args->buffers[2]);
  for (int64_t i = begin; i < end; ++i) c[i] = a[i] + b[i];
}

// y = params[0] * x + params[1]
void affine_kernel(const KernelArgs* args, int64_t begin, int64_t end) {
  const float* x = static_cast<const float*>(args->buffers[0]);
  float* y = static_cast<float*>(args->buffers[1]);
  for (int64_t i = begin; i < end; ++i) {
    y[i] = static_cast<float>(args->params[0]) * x[i] + static_cast<float>(args->params[1]);
  }
}

void scratch_kernel(const KernelArgs* args, int64_t begin, int64_t end) {
  float* scratch = static_cast<float*>(args->scratch);
  float* y = static_cast<float*>(args->buffers[0]);
  for (int64_t i = begin; i < end; ++i) scratch[i % 16] = static_cast<float>(i), y[i] = scratch[i % 16];
}

void write_int_kernel(const KernelArgs* args, int64_t, int64_t) {
  *static_cast<int64_t*>(args->buffers[1]) += *static_cast<const int32_t*>(args->buffers[0]);
}

// predicate = x[0] < params[0]
void below_kernel(const KernelArgs* args, int64_t, int64_t) {
  *static_cast<uint8_t*>(args->buffers[1]) =
      *static_cast<const float*>(args->buffers[0]) < static_cast<float>(args->params[0]);
}

// c[row, :] += bias over rows of length params[0]
void bias_rows_kernel(const KernelArgs* args, int64_t begin, int64_t end) {
  float* c = static_cast<float*>(args->buffers[0]);
  const float* bias = static_cast<const float*>(args->buffers[1]);
  const int64_t n = args->params[0];
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t j = 0; j < n; ++j) c[row * n + j] += bias[j];
  }
}

LaunchStep launch_of(KernelFn fn, std::vector<Slot> slots, std::vector<int64_t> params, int64_t extent,
                     double cost_ns = 1, const char* name = "kernel") {
  LaunchStep step{};
  step.fn = fn;
  step.slots = std::move(slots);
  step.params = std::move(params);
  step.extent = extent;
  step.grain = 1;
  step.cost_ns = cost_ns;
  step.name = name;
  return step;
}

// --- running ---

struct Outputs {
  std::vector<Buffer> buffers;
  explicit Outputs(size_t count) : buffers(count) {}
  Outputs(const Outputs&) = delete;
  ~Outputs() {
    for (const Buffer& buffer : buffers) {
      if (buffer.block != nullptr) buffer.block->release();
    }
  }
  float* floats(size_t j = 0) const { return static_cast<float*>(buffers[j].data); }
};

Buffer plain(Floats& values) { return {nullptr, values.data()}; }

Buffer in_block(const Ref<Block>& block) { return {block.get(), block->data()}; }

Ref<Block> floats_block(std::initializer_list<float> values, size_t bytes = 0) {
  Ref<Block> block = Pool::allocate(std::max(bytes, values.size() * sizeof(float)));
  std::memcpy(block->data(), values.begin(), values.size() * sizeof(float));
  return block;
}

}  // namespace

void test_executable(Runner& runner) {
  set_num_threads(4);

  runner.run("one launch", [] {
    ExecutableBuilder builder;
    const Slot a = builder.input(32), b = builder.input(32), c = builder.output(32);
    builder.launch(launch_of(add_kernel, {a, b, c}, {}, 8));
    const Ref<Executable> executable = builder.finish(0, 10);
    CHECK_EQUAL(executable->num_inputs(), 2);
    CHECK_EQUAL(executable->num_outputs(), 1);
    Floats x(8, 1.5f), y(8, 2.0f);
    const Buffer inputs[] = {plain(x), plain(y)};
    Outputs outputs(1);
    executable->run(inputs, outputs.buffers.data());
    for (int i = 0; i < 8; ++i) CHECK_EQUAL(outputs.floats()[i], 3.5f);
    CHECK(outputs.buffers[0].block->exclusive());
  });

  runner.run("into given memory, shared results as copies", [] {
    const Ref<Block> seven = floats_block({7});
    ExecutableBuilder builder;
    const Slot a = builder.input(4), k = builder.constant(seven, seven->data(), 4), c = builder.output(4);
    builder.launch(launch_of(add_kernel, {a, k, c}, {}, 1));
    builder.output_alias(4, OutputKind::AliasInput, 0);
    builder.output_alias(4, OutputKind::AliasConstant, 0);
    builder.output_alias(4, OutputKind::AliasOutput, 0);
    builder.output_alias(4, OutputKind::AliasOutput, 3);
    const Ref<Executable> executable = builder.finish(0, 10);
    Floats x{2}, results(5);
    const Buffer inputs[] = {plain(x)};
    std::vector<Buffer> outputs;
    for (float& result : results) outputs.push_back({nullptr, &result});
    executable->execute_into(inputs, outputs.data(), &kNeverCancelled);
    CHECK((results == Floats{9, 2, 7, 9, 9}));
  });

  runner.run("a large launch runs on several threads, with temporaries and constants", [] {
    const int64_t n = 100000;
    const Ref<Block> ones = Pool::allocate(n * 4);
    std::fill_n(static_cast<float*>(ones->data()), n, 1.0f);
    ExecutableBuilder builder;
    const Slot x = builder.input(n * 4), k = builder.constant(ones, ones->data(), n * 4);
    const Slot t = builder.temp(128), y = builder.output(n * 4);
    builder.launch(launch_of(add_kernel, {x, k, t}, {}, n));
    builder.launch(launch_of(affine_kernel, {t, y}, {3, -1}, n));
    const Ref<Executable> executable = builder.finish(128 + n * 4, 1000);
    Floats input(n);
    std::iota(input.begin(), input.end(), 0.0f);
    const Buffer inputs[] = {plain(input)};
    Outputs outputs(1);
    executable->run(inputs, outputs.buffers.data());
    for (int64_t i = 0; i < n; i += 997)
      CHECK_EQUAL(outputs.floats()[i], 3 * (static_cast<float>(i) + 1) - 1);
  });

  runner.run("empty launches, empty outputs, scratch", [] {
    ExecutableBuilder builder;
    const Slot empty = builder.output(0), y = builder.output(64 * 4), t = builder.temp(0);
    builder.launch(launch_of(scratch_kernel, {t}, {}, 0));
    LaunchStep step = launch_of(scratch_kernel, {y}, {}, 64, 1000);
    step.scratch_bytes = 64;
    builder.launch(step);
    builder.copy(empty, y, 0);
    const Ref<Executable> executable = builder.finish(0, 0);
    Outputs outputs(2);
    executable->run(nullptr, outputs.buffers.data());
    for (int i = 0; i < 64; ++i) CHECK_EQUAL(outputs.floats(1)[i], static_cast<float>(i));
  });

  runner.run("aliases", [] {
    const Ref<Block> constant = floats_block({7, 8});
    ExecutableBuilder builder;
    builder.input(8);
    builder.constant(constant, constant->data(), 8);
    builder.output_alias(8, OutputKind::AliasInput, 0);
    builder.output_alias(8, OutputKind::AliasConstant, 0);
    builder.output_alias(8, OutputKind::AliasOutput, 0);
    const Ref<Executable> executable = builder.finish(0, 0);
    const Ref<Block> block = floats_block({1, 2, 3});
    const Buffer view{block.get(), static_cast<float*>(block->data()) + 1};
    {
      Outputs outputs(3);
      executable->run(&view, outputs.buffers.data());
      CHECK(outputs.buffers[0].block == block.get() && outputs.buffers[0].data == view.data);
      CHECK(outputs.buffers[1].data == constant->data() && outputs.buffers[2].data == view.data);
      CHECK_EQUAL(block->references(), 3);
    }
    CHECK(block->exclusive());
    // Memory that the caller lends is copied.
    Floats lent{5, 6};
    const Buffer inputs[] = {plain(lent)};
    Outputs outputs(3);
    executable->run(inputs, outputs.buffers.data());
    lent[0] = 0;
    CHECK_EQUAL(outputs.floats(0)[0], 5.0f);
    CHECK(outputs.buffers[2].data == outputs.buffers[0].data);
  });

  runner.run("a donated block is taken over only when nobody else holds it", [] {
    ExecutableBuilder builder;
    const Slot a = builder.input(16), b = builder.input(16), c = builder.output(16, 0);
    builder.launch(launch_of(add_kernel, {a, b, c}, {}, 4));
    const Ref<Executable> executable = builder.finish(0, 0);
    const auto taken = [&](const Buffer& first, const Buffer& second) {
      Outputs outputs(1);
      const Buffer inputs[] = {first, second};
      const float expected = static_cast<float*>(first.data)[3] + static_cast<float*>(second.data)[3];
      executable->run(inputs, outputs.buffers.data());
      CHECK_EQUAL(outputs.floats()[3], expected);
      return outputs.buffers[0].data == first.data;
    };
    const Ref<Block> other = floats_block({1, 1, 1, 1}), block = floats_block({1, 2, 3, 4});
    CHECK(taken(in_block(block), in_block(other)));
    CHECK(block->exclusive() && other->exclusive());
    CHECK(!taken(in_block(block), in_block(block)));
    CHECK(block->exclusive());
    {
      const Ref<Block> held = block;
      CHECK(!taken(in_block(block), in_block(other)));
    }
    const Ref<Block> wide = floats_block({1, 2, 3, 4, 5});
    CHECK(!taken({wide.get(), static_cast<float*>(wide->data()) + 1}, in_block(other)));
    alignas(64) static float memory[4] = {1, 2, 3, 4};
    const Ref<Block> foreign = Block::foreign(memory, sizeof memory, nullptr, nullptr);
    CHECK(!taken(in_block(foreign), in_block(other)));
    Floats lent(4, 2.0f);
    CHECK(!taken(plain(lent), in_block(other)));
  });

  runner.run("library and copy steps", [] {
    ExecutableBuilder builder;
    const Slot x = builder.input(16), y = builder.output(16), z = builder.output(16);
    builder.library("copy", {x, y}, {16}, 1);
    builder.library("fill", {z}, {4, 4, std::bit_cast<int32_t>(2.5f), 0}, 1);
    const Ref<Executable> executable = builder.finish(0, 0);
    Floats input{1, 2, 3, 4};
    const Buffer inputs[] = {plain(input)};
    Outputs outputs(2);
    executable->run(inputs, outputs.buffers.data());
    CHECK(outputs.floats(0)[3] == 4 && outputs.floats(1)[3] == 2.5f);
  });

  runner.run("tiled: a product with its epilogue", [] {
    const int64_t m = 70, n = 5, k = 30, batch = 2;
    GemmParams g{static_cast<int64_t>(DType::Float32), 0, 0, m, n, k, k, n, n, batch, m * k, 0, m * n,
                 std::bit_cast<int64_t>(1.0),          0, 0, 0, 1, 0, 0, 0};
    const auto* words = reinterpret_cast<const int64_t*>(&g);
    const std::vector<int64_t> params(words, words + sizeof g / 8);
    ExecutableBuilder builder;
    const Slot a = builder.input(batch * m * k * 4), b = builder.input(k * n * 4),
               bias = builder.input(n * 4);
    const Slot c = builder.output(batch * m * n * 4);
    builder.tiled(batch * m, 1, 1, "gemm", {a, b, c}, params, 1e6,
                  launch_of(bias_rows_kernel, {c, bias}, {n}, batch * m));
    const Ref<Executable> executable = builder.finish(0, 0);
    Floats left(static_cast<size_t>(batch * m * k), 2.0f), right(static_cast<size_t>(k * n), 0.5f),
        offset{0, 1, 2, 3, 4};
    const Buffer inputs[] = {plain(left), plain(right), plain(offset)};
    const auto check = [&] {
      Outputs outputs(1);
      executable->run(inputs, outputs.buffers.data());
      for (int64_t i = 0; i < batch * m * n; ++i)
        CHECK_EQUAL(outputs.floats()[i], 30.0f + static_cast<float>(i % n));
    };
    check();  // BLAS without control of its threads: the whole product first
    set_library_symbol("openblas_set_num_threads_local", reinterpret_cast<void*>(&fake_set_num_threads));
    check();
    set_library_symbol("sgemm", reinterpret_cast<void*>(&fake_gemm<float>));
    check();
    push_num_threads(1);
    check();
    pop_num_threads();
    for (const std::string& name : library_symbol_names()) set_library_symbol(name, nullptr);
    CHECK_EQUAL(blas_threads.load(), 8);
  });

  runner.run("host callbacks", [] {
    ExecutableBuilder builder;
    const Slot x = builder.input(4), y = builder.output(4);
    const int twice = builder.callback([](void* const* buffers) {
      *static_cast<float*>(buffers[1]) = 2 * *static_cast<const float*>(buffers[0]);
    });
    const int fails = builder.callback([](void* const* buffers) {
      if (*static_cast<const float*>(buffers[0]) > 10) throw std::out_of_range("more than 10");
    });
    builder.host(twice, {x, y});
    builder.host(fails, {y});
    const Ref<Executable> executable = builder.finish(0, 0);
    CHECK(executable->has_host_steps());
    Floats input{4};
    const Buffer inputs[] = {plain(input)};
    {
      Outputs outputs(1);
      executable->run(inputs, outputs.buffers.data());
      CHECK_EQUAL(outputs.floats()[0], 8.0f);
    }
    input[0] = 6;
    Buffer output{};
    const size_t in_use = Pool::stats().in_use;
    CHECK_THROWS(std::out_of_range, executable->run(inputs, &output));
    CHECK(output.block == nullptr);
    CHECK_EQUAL(Pool::stats().in_use, in_use);
  });

  runner.run("a loop with swapped carries, odd and even", [] {
    for (const int64_t count : {0, 1, 2, 5, 8}) {
      ExecutableBuilder builder;
      const Slot x = builder.input(8), carry = builder.output(8), next = builder.temp(0);
      builder.copy(carry, x, 8);
      LoopStep loop{};
      loop.count = count;
      builder.begin_loop(loop);
      builder.launch(launch_of(affine_kernel, {carry, next}, {2, 1}, 2));
      builder.swap(carry, next);
      builder.end();
      const Ref<Executable> executable = builder.finish(64, 0);
      Floats input{0, 1};
      const Buffer inputs[] = {plain(input)};
      Outputs outputs(1);
      executable->run(inputs, outputs.buffers.data());
      const float power = std::ldexp(1.0f, static_cast<int>(count));
      CHECK_EQUAL(outputs.floats()[0], power - 1);
      CHECK_EQUAL(outputs.floats()[1], 2 * power - 1);
    }
  });

  runner.run("outputs swapped with each other", [] {
    ExecutableBuilder builder;
    const Slot x = builder.input(4), y = builder.input(4), first = builder.output(4),
               second = builder.output(4);
    builder.copy(first, x, 4);
    builder.copy(second, y, 4);
    builder.swap(first, second);
    const Ref<Executable> executable = builder.finish(0, 0);
    Floats one{1}, two{2};
    const Buffer inputs[] = {plain(one), plain(two)};
    Outputs outputs(2);
    executable->run(inputs, outputs.buffers.data());
    CHECK(outputs.floats(0)[0] == 2 && outputs.floats(1)[0] == 1);
  });

  runner.run("loops by predicate, by counted slot, nested, with the iteration number", [] {
    ExecutableBuilder builder;
    const Slot x = builder.input(4), count = builder.input(8), value = builder.output(4),
               total = builder.output(8);
    const Slot predicate = builder.temp(0), iteration = builder.temp(64);
    builder.copy(value, x, 4);
    builder.launch(launch_of(below_kernel, {value, predicate}, {100}, 1));
    LoopStep while_loop{};
    while_loop.predicate_slot = predicate;
    builder.begin_loop(while_loop);
    builder.launch(launch_of(affine_kernel, {value, value}, {2, 0}, 1));
    builder.launch(launch_of(below_kernel, {value, predicate}, {100}, 1));
    builder.end();
    builder.library("fill", {total}, {1, 8, 0, 0}, 1);
    LoopStep outer{};
    outer.count = 2;
    builder.begin_loop(outer);
    LoopStep inner{};
    inner.count_slot = count;
    inner.count_dtype = DType::Int64;
    inner.iteration_slot = iteration;
    builder.begin_loop(inner);
    builder.launch(launch_of(write_int_kernel, {iteration, total}, {}, 1));
    builder.end();
    builder.end();
    const Ref<Executable> executable = builder.finish(128, 0);
    for (const int64_t n : {-1, 0, 5}) {
      Floats input{3};
      int64_t times = n;
      const Buffer inputs[] = {plain(input), {nullptr, &times}};
      Outputs outputs(2);
      executable->run(inputs, outputs.buffers.data());
      CHECK_EQUAL(outputs.floats()[0], 192.0f);
      CHECK_EQUAL(*static_cast<int64_t*>(outputs.buffers[1].data), n == 5 ? 20 : 0);
    }
  });

  runner.run("slices walk through inputs and outputs", [] {
    ExecutableBuilder builder;
    const Slot rows = builder.input(12 * 4), sums = builder.output(12 * 4);
    const Slot row = builder.view(), previous = builder.view(), target = builder.view();
    builder.copy(sums, rows, 12);
    LoopStep loop{};
    loop.count = 3;
    builder.begin_loop(loop);
    builder.slice(row, rows, 12, 12);
    builder.slice(previous, sums, 0, 12);
    builder.slice(target, sums, 12, 12);
    builder.launch(launch_of(add_kernel, {row, previous, target}, {}, 3));
    builder.end();
    const Ref<Executable> executable = builder.finish(0, 0);
    Floats input(12, 1.0f);
    const Buffer inputs[] = {plain(input)};
    Outputs outputs(1);
    executable->run(inputs, outputs.buffers.data());
    for (int i = 0; i < 12; ++i) CHECK_EQUAL(outputs.floats()[i], static_cast<float>(i / 3 + 1));
  });

  runner.run("branches clamp their index", [] {
    ExecutableBuilder builder;
    const Slot index = builder.input(4), x = builder.input(4), y = builder.output(4);
    builder.begin_branch(index);
    builder.launch(launch_of(affine_kernel, {x, y}, {0, 10}, 1));
    builder.next_case();
    builder.launch(launch_of(affine_kernel, {x, y}, {0, 20}, 1));
    builder.next_case();
    builder.launch(launch_of(affine_kernel, {x, y}, {0, 30}, 1));
    builder.end();
    const Ref<Executable> executable = builder.finish(0, 0);
    const int32_t indices[] = {-5, 0, 1, 2, 99};
    const float expected[] = {10, 10, 20, 30, 30};
    for (int i = 0; i < 5; ++i) {
      int32_t chosen = indices[i];
      Floats input{1};
      const Buffer inputs[] = {{nullptr, &chosen}, plain(input)};
      Outputs outputs(1);
      executable->run(inputs, outputs.buffers.data());
      CHECK_EQUAL(outputs.floats()[0], expected[i]);
    }
  });

  runner.run("more slots than the stack has room for", [] {
    ExecutableBuilder builder;
    const int n = 400;
    std::vector<Slot> ins, outs;
    for (int i = 0; i < n; ++i) ins.push_back(builder.input(4));
    for (int i = 0; i < n; ++i) outs.push_back(builder.output(4));
    for (int i = 0; i < n; ++i) builder.launch(launch_of(affine_kernel, {ins[i], outs[i]}, {1, i}, 1));
    const Ref<Executable> executable = builder.finish(0, 0);
    Floats values(n, 0.5f);
    std::vector<Buffer> inputs;
    for (float& value : values) inputs.push_back({nullptr, &value});
    Outputs outputs(n);
    executable->run(inputs.data(), outputs.buffers.data());
    for (int i = 0; i < n; ++i) CHECK_EQUAL(outputs.floats(i)[0], 0.5f + static_cast<float>(i));
  });

  runner.run("out of memory leaves nothing behind", [] {
    ExecutableBuilder builder;
    const Slot a = builder.input(16);
    builder.output(16, 0);
    builder.output(64 << 20);
    (void)a;
    const Ref<Executable> executable = builder.finish(0, 0);
    const Ref<Block> block = floats_block({1, 2, 3, 4});
    const Buffer inputs[] = {in_block(block)};
    Pool::trim();
    Pool::set_limit(Pool::stats().in_use + (32 << 20));
    Outputs outputs(2);
    CHECK_THROWS(OutOfMemory, executable->prepare_outputs(inputs, outputs.buffers.data()));
    Pool::set_limit(0);
    outputs.buffers.assign(2, Buffer{});
    CHECK(block->exclusive());
  });

  runner.run("cancelled runs throw, loops end", [] {
    ExecutableBuilder builder;
    const Slot x = builder.input(4), y = builder.output(4), forever = builder.temp(0);
    int32_t cancel = 0;
    builder.copy(y, x, 4);
    builder.library("fill", {forever}, {1, 1, 1, 0}, 1);
    LoopStep loop{};
    loop.predicate_slot = forever;
    builder.begin_loop(loop);
    builder.host(builder.callback([&](void* const*) { __atomic_store_n(&cancel, 1, __ATOMIC_RELAXED); }), {});
    builder.end();
    const Ref<Executable> executable = builder.finish(64, 0);
    Floats input{1};
    const Buffer inputs[] = {plain(input)};
    Outputs outputs(1);
    CHECK_THROWS(Error, executable->run(inputs, outputs.buffers.data(), &cancel));
  });

  runner.run("queued runs", [] {
    ExecutableBuilder builder;
    const Slot a = builder.input(16), b = builder.input(16), c = builder.output(16);
    builder.launch(launch_of(add_kernel, {a, b, c}, {}, 4));
    const Ref<Executable> executable = builder.finish(0, 1e6);
    DeviceQueue& queue = DeviceQueue::get(0);
    Ref<Block> current = floats_block({0, 0, 0, 0});
    const Ref<Block> ones = floats_block({1, 1, 1, 1});
    Ref<Event> event;
    for (int i = 0; i < 100; ++i) {
      const Buffer inputs[] = {in_block(current), in_block(ones)};
      Buffer output;
      executable->prepare_outputs(inputs, &output);
      event = Event::create();
      queue.submit(std::make_unique<ExecutableJob>(executable, inputs, &output, event));
      current = Ref<Block>::adopt(output.block);
    }
    event->wait();
    event->rethrow_if_failed();
    CHECK_EQUAL(static_cast<float*>(current->data())[3], 100.0f);
    CHECK(current->exclusive() && ones->exclusive());
  });

  runner.run("one executable on many threads", [] {
    const int64_t n = 30000;
    ExecutableBuilder builder;
    const Slot x = builder.input(n * 4), t = builder.temp(0), y = builder.output(n * 4);
    builder.launch(launch_of(affine_kernel, {x, t}, {2, 0}, n));
    builder.launch(launch_of(affine_kernel, {t, y}, {1, 1}, n));
    const Ref<Executable> executable = builder.finish(n * 4, 0);
    std::atomic<bool> right{true};
    std::vector<std::thread> threads;
    for (int t_index = 0; t_index < 4; ++t_index) {
      threads.emplace_back([&, t_index] {
        Floats input(n, static_cast<float>(t_index));
        const Buffer inputs[] = {plain(input)};
        for (int round = 0; round < 20; ++round) {
          Outputs outputs(1);
          executable->run(inputs, outputs.buffers.data());
          for (int64_t i = 0; i < n; ++i) {
            if (outputs.floats()[i] != static_cast<float>(2 * t_index + 1)) right = false;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(right);
  });

  runner.run("steps are recorded in the profile", [] {
    ExecutableBuilder builder;
    const Slot x = builder.input(4), y = builder.output(4);
    LaunchStep step = launch_of(affine_kernel, {x, y}, {1, 0}, 1, 1, "my_kernel");
    step.bytes = 8;
    builder.launch(step);
    const Ref<Executable> executable = builder.finish(0, 0);
    Floats input{1};
    const Buffer inputs[] = {plain(input)};
    Outputs outputs(1);
    profile_start();
    executable->run(inputs, outputs.buffers.data());
    const std::vector<ProfileRecord> records = profile_stop();
    CHECK_EQUAL(records.size(), 1u);
    CHECK(std::string(records[0].name) == "my_kernel" && records[0].bytes == 8);
    CHECK(records[0].end_ns >= records[0].start_ns);
  });

  runner.run("describe", [] {
    ExecutableBuilder builder;
    const Slot x = builder.input(4), y = builder.output(4, 0), t = builder.temp(0);
    LoopStep loop{};
    loop.count = 3;
    builder.begin_loop(loop);
    builder.launch(launch_of(affine_kernel, {x, y}, {2, 1}, 1, 1, "double_plus_one"));
    builder.swap(y, t);
    builder.end();
    const std::string text = builder.finish(64, 12)->describe();
    for (const char* part :
         {"slot 0 = input 0 bytes=4", "take_over=0", "loop count=3",
          "  launch double_plus_one slots=(0, 1) params=(2, 1)", "  swap 1 2", "arena=64"}) {
      CHECK(text.find(part) != std::string::npos);
    }
  });

  runner.run("mistakes in building", [] {
    ExecutableBuilder builder;
    const Slot x = builder.input(4), y = builder.output(4), view = builder.view();
    const Ref<Block> block = floats_block({1});
    const Slot constant = builder.constant(block, block->data(), 4);
    CHECK_THROWS(Error, builder.launch(launch_of(affine_kernel, {x, 99}, {}, 1)));
    CHECK_THROWS(Error, builder.launch(launch_of(nullptr, {x, y}, {}, 1)));
    CHECK_THROWS(Error, builder.launch(launch_of(affine_kernel, {x, y}, {}, -1)));
    CHECK_THROWS(Error, builder.library("nothing", {}, {}, 0));
    CHECK_THROWS(Error, builder.library("copy", {x}, {4}, 0));
    const auto one = launch_of(affine_kernel, {x, y}, {}, 1);
    CHECK_THROWS(Error, builder.tiled(1, 1, 1, "copy", {x, y}, {4}, 0, one));
    CHECK_THROWS(Error, builder.host(0, {}));
    CHECK_THROWS(Error, builder.swap(x, y));
    CHECK_THROWS(Error, builder.swap(y, view));
    CHECK_THROWS(Error, builder.copy(constant, x, 4));
    CHECK_THROWS(Error, builder.slice(y, x, 0, 0));
    CHECK_THROWS(Error, builder.begin_loop(LoopStep{}));
    CHECK_THROWS(Error, builder.next_case());
    CHECK_THROWS(Error, builder.end());
    CHECK_THROWS(Error, builder.constant({}, nullptr, 0));
    builder.begin_branch(x);
    CHECK_THROWS(Error, builder.finish(0, 0));
    builder.end();
    builder.temp(100);
    CHECK_THROWS(Error, builder.finish(50, 0));
    builder.output_alias(4, OutputKind::AliasInput, 3);
    CHECK_THROWS(Error, builder.finish(100, 0));

    ExecutableBuilder both;
    both.input(4);
    both.output(4, 0);
    both.output_alias(4, OutputKind::AliasInput, 0);
    CHECK_THROWS(Error, both.finish(0, 0));

    ExecutableBuilder finished;
    finished.input(4);
    (void)finished.finish(0, 0);
    CHECK_THROWS(Error, finished.input(4));
  });
}

}  // namespace jato::test
