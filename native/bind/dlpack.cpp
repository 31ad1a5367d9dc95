// DLPack, both ways: the versioned capsules of DLPack 1 and the older ones.
#include "array.h"
#include "waiting.h"

namespace jato::bind {

namespace {

// The structures of DLPack 1.0 (a fixed ABI).
struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};
struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* manager_context;
  void (*deleter)(DLManagedTensor*);
};
struct DLPackVersion {
  uint32_t major, minor;
};
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_context;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor tensor;
};

constexpr int32_t kCpu = 1;
constexpr uint64_t kReadOnly = 1, kIsCopied = 2;
enum : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kComplex = 5, kBool = 6 };

bool type_to_dlpack(DType dtype, DLDataType* result) {
  uint8_t code;
  if (dtype == DType::Bool)
    code = kBool;
  else if (dtype <= DType::Int64)
    code = kInt;
  else if (dtype <= DType::UInt64)
    code = kUInt;
  else if (dtype == DType::BFloat16)
    code = kBfloat;
  else if (dtype <= DType::Float64)
    code = kFloat;
  else if (dtype <= DType::Complex128)
    code = kComplex;
  else
    return false;
  *result = {code, static_cast<uint8_t>(8 * itemsize(dtype)), 1};
  return true;
}

bool type_from_dlpack(DLDataType type, DType* result) {
  if (type.lanes != 1) return false;
  for (int code = 0; code < kNumDTypes; ++code) {
    DLDataType candidate;
    if (type_to_dlpack(static_cast<DType>(code), &candidate) && candidate.code == type.code &&
        candidate.bits == type.bits) {
      *result = static_cast<DType>(code);
      return true;
    }
  }
  return false;
}

// What an exported tensor owns: the block and the geometry.
template <class Managed>
struct Exported {
  Managed managed;
  Block* block;
  int64_t geometry[2 * kMaxDims];
};

template <class Managed>
void delete_exported(Managed* managed) {
  Exported<Managed>* exported = static_cast<Exported<Managed>*>(managed->manager_context);
  exported->block->release();
  delete exported;
}

template <class Managed>
constexpr const char* capsule_name() {
  return std::is_same_v<Managed, DLManagedTensor> ? "dltensor" : "dltensor_versioned";
}

template <class Managed>
void delete_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, capsule_name<Managed>())) return;  // consumed
  Managed* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, capsule_name<Managed>()));
  if (managed->deleter) managed->deleter(managed);
}

template <class Managed>
PyObject* export_tensor(Array* array, DLDataType dtype, Block* block, char* data) {
  auto* exported = new (std::nothrow) Exported<Managed>();
  if (!exported) return PyErr_NoMemory();
  const ArrayType* type = array->type;
  int64_t stride = 1;
  for (int i = type->ndim - 1; i >= 0; --i) {
    exported->geometry[i] = type->dims[i];
    exported->geometry[kMaxDims + i] = stride;
    stride *= type->dims[i];
  }
  block->retain();
  exported->block = block;
  Managed* managed = &exported->managed;
  managed->manager_context = exported;
  managed->deleter = delete_exported<Managed>;
  managed->tensor = {data, {kCpu, 0}, type->ndim, dtype, exported->geometry, exported->geometry + kMaxDims,
                     0};
  PyObject* capsule = PyCapsule_New(managed, capsule_name<Managed>(), delete_capsule<Managed>);
  if (!capsule) delete_exported<Managed>(managed);
  return capsule;
}

// Foreign memory: its deleter may be Python code of another library.
template <class Managed>
void delete_imported(void* context) {
  Managed* managed = static_cast<Managed*>(context);
  if (!managed->deleter || !Py_IsInitialized()) return;
  PyGILState_STATE gil = PyGILState_Ensure();
  managed->deleter(managed);
  PyGILState_Release(gil);
}

bool is_dense(const DLTensor& tensor) {
  if (!tensor.strides) return true;
  int64_t stride = 1;
  for (int i = tensor.ndim - 1; i >= 0; --i) {
    if (tensor.shape[i] == 0) return true;
    if (tensor.shape[i] != 1 && tensor.strides[i] != stride) return false;
    stride *= tensor.shape[i];
  }
  return true;
}

// Copies a strided tensor element by element into dense memory.
void copy_strided(const DLTensor& tensor, const char* source, size_t bytes, int64_t size, char* target) {
  int64_t index[kMaxDims] = {};
  for (int64_t n = 0; n < size; ++n) {
    int64_t offset = 0;
    for (int i = 0; i < tensor.ndim; ++i) offset += index[i] * tensor.strides[i];
    std::memcpy(target + static_cast<size_t>(n) * bytes, source + offset * static_cast<int64_t>(bytes),
                bytes);
    for (int i = tensor.ndim - 1; i >= 0 && ++index[i] == tensor.shape[i]; --i) index[i] = 0;
  }
}

// `share` when nobody may write the memory any more (a read-only tensor), else a copy: an Array never
// changes.
template <class Managed>
PyObject* import_tensor(PyObject* capsule, bool read_only) {
  Managed* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, capsule_name<Managed>()));
  if (!managed) return nullptr;
  const DLTensor& tensor = managed->tensor;
  if (tensor.device.device_type != kCpu) {
    PyErr_Format(PyExc_BufferError,
                 "from_dlpack: expected memory of the CPU, got DLPack device type %d. Move the array to the "
                 "CPU first.",
                 static_cast<int>(tensor.device.device_type));
    return nullptr;
  }
  DType dtype;
  if (!type_from_dlpack(tensor.dtype, &dtype)) {
    PyErr_Format(PyExc_BufferError, "from_dlpack: element type (code %d, %d bits, %d lanes) is not supported",
                 static_cast<int>(tensor.dtype.code), static_cast<int>(tensor.dtype.bits),
                 static_cast<int>(tensor.dtype.lanes));
    return nullptr;
  }
  ArrayType* type = make_array_type(dtype, false, tensor.ndim, tensor.shape);
  if (!type) return nullptr;
  PyRef owner = PyRef::steal(reinterpret_cast<PyObject*>(type));
  char* source = static_cast<char*>(tensor.data) + tensor.byte_offset;
  bool aligned = reinterpret_cast<uintptr_t>(source) % itemsize(dtype) == 0;
  Array* array = nullptr;
  if (read_only && is_dense(tensor) && aligned && type->nbytes > 0) {
    try {
      jato::Ref<Block> block =
          Block::foreign(source, static_cast<size_t>(type->nbytes), delete_imported<Managed>, managed);
      if (PyCapsule_SetName(capsule, std::is_same_v<Managed, DLManagedTensor> ? "used_dltensor"
                                                                              : "used_dltensor_versioned") <
          0)
        return nullptr;
      owner.release();
      return reinterpret_cast<PyObject*>(new_array(type, block.detach(), source, nullptr));
    } catch (...) {
      return set_current_error();
    }
  }
  array = empty_array(type, nullptr);
  if (!array) return nullptr;
  if (is_dense(tensor)) {
    if (type->nbytes) std::memcpy(array->data, source, static_cast<size_t>(type->nbytes));
  } else {
    copy_strided(tensor, source, itemsize(dtype), type->size, array->data);
  }
  return reinterpret_cast<PyObject*>(array);
}

PyObject* from_dlpack(PyObject*, PyObject* object) {
  PyRef capsule;
  if (PyCapsule_CheckExact(object)) {
    capsule = PyRef::borrow(object);
  } else {
    PyRef method = PyRef::steal(PyObject_GetAttrString(object, "__dlpack__"));
    if (!method) return nullptr;
    PyRef empty = PyRef::steal(PyTuple_New(0));
    PyRef kwargs = PyRef::steal(Py_BuildValue("{s:(ii)}", "max_version", 1, 0));
    if (!empty || !kwargs) return nullptr;
    capsule = PyRef::steal(PyObject_Call(method.get(), empty.get(), kwargs.get()));
    if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {  // a producer older than DLPack 1
      PyErr_Clear();
      capsule = PyRef::steal(PyObject_Call(method.get(), empty.get(), nullptr));
    }
    if (!capsule) return nullptr;
  }
  if (PyCapsule_IsValid(capsule.get(), capsule_name<DLManagedTensorVersioned>())) {
    auto* managed = static_cast<DLManagedTensorVersioned*>(
        PyCapsule_GetPointer(capsule.get(), capsule_name<DLManagedTensorVersioned>()));
    if (managed->version.major != 1) {
      PyErr_Format(PyExc_BufferError, "from_dlpack: DLPack version %u.%u is not supported (expected 1.x)",
                   managed->version.major, managed->version.minor);
      return nullptr;
    }
    return import_tensor<DLManagedTensorVersioned>(capsule.get(),
                                                   (managed->flags & (kReadOnly | kIsCopied)) != 0);
  }
  if (PyCapsule_IsValid(capsule.get(), capsule_name<DLManagedTensor>()))
    return import_tensor<DLManagedTensor>(capsule.get(), false);
  PyErr_Format(PyExc_TypeError,
               "from_dlpack: expected an object with __dlpack__ or an unused DLPack capsule, got %s",
               Py_TYPE(object)->tp_name);
  return nullptr;
}

}  // namespace

PyObject* to_dlpack(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", const_cast<char**>(names), &stream,
                                   &max_version, &device, &copy))
    return nullptr;
  Array* array = as_array(self);
  if (ready(array) < 0) return nullptr;
  DLDataType dtype;
  if (!type_to_dlpack(array->type->dtype, &dtype)) {
    PyErr_Format(PyExc_BufferError, "__dlpack__: arrays of dtype %s cannot be exported",
                 name(array->type->dtype));
    return nullptr;
  }
  int device_type = kCpu, device_id = 0;
  if (device != Py_None && !PyArg_ParseTuple(device, "ii", &device_type, &device_id)) return nullptr;
  if (device_type != kCpu) {
    PyErr_Format(PyExc_BufferError, "__dlpack__: can only export to the CPU, got device type %d",
                 device_type);
    return nullptr;
  }
  int must_copy = copy == Py_None ? 0 : PyObject_IsTrue(copy);
  if (must_copy < 0) return nullptr;
  jato::Ref<Block> block = jato::Ref<Block>::share(array->block);
  char* data = array->data;
  if (must_copy) {
    try {
      block = Pool::allocate(static_cast<size_t>(array->type->nbytes));
    } catch (...) {
      return set_current_error();
    }
    std::memcpy(block->data(), data, static_cast<size_t>(array->type->nbytes));
    data = static_cast<char*>(block->data());
  }
  int major = 0;
  if (max_version != Py_None) {
    int minor;
    if (!PyTuple_Check(max_version) || !PyArg_ParseTuple(max_version, "ii", &major, &minor)) return nullptr;
  }
  if (major < 1) return export_tensor<DLManagedTensor>(array, dtype, block.get(), data);
  PyObject* capsule = export_tensor<DLManagedTensorVersioned>(array, dtype, block.get(), data);
  if (!capsule) return nullptr;
  auto* managed = static_cast<DLManagedTensorVersioned*>(
      PyCapsule_GetPointer(capsule, capsule_name<DLManagedTensorVersioned>()));
  managed->version = {1, 0};
  managed->flags = must_copy ? kIsCopied : kReadOnly;
  return capsule;
}

PyObject* dlpack_device(PyObject*, PyObject*) { return Py_BuildValue("(ii)", static_cast<int>(kCpu), 0); }

PyMethodDef dlpack_functions[] = {
    {"from_dlpack", from_dlpack, METH_O,
     "from_dlpack(object) -> Array: shares the memory where it is read-only, copies it otherwise"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace jato::bind
