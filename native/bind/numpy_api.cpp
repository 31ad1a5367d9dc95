#define JATO_IMPORT_NUMPY
#include "numpy_api.h"

#include "state.h"

namespace jato::bind {

namespace {

// Fixed type numbers of NumPy; -1: no dtype of ours.
constexpr int kBuiltin = 24;
int8_t builtin_codes[kBuiltin];

PyArray_Descr* descrs[kNumDTypes];
int bfloat16_number = -1;

int8_t code_of_integer(size_t bytes, bool is_signed) {
  int log2 = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
  return static_cast<int8_t>(static_cast<int>(is_signed ? DType::Int8 : DType::UInt8) + log2);
}

}  // namespace

int import_numpy() {
  import_array1(-1);
  std::memset(builtin_codes, -1, sizeof builtin_codes);
  auto set = [](int number, DType dtype) { builtin_codes[number] = static_cast<int8_t>(dtype); };
  set(NPY_BOOL, DType::Bool);
  builtin_codes[NPY_BYTE] = code_of_integer(sizeof(char), true);
  builtin_codes[NPY_UBYTE] = code_of_integer(sizeof(char), false);
  builtin_codes[NPY_SHORT] = code_of_integer(sizeof(short), true);
  builtin_codes[NPY_USHORT] = code_of_integer(sizeof(short), false);
  builtin_codes[NPY_INT] = code_of_integer(sizeof(int), true);
  builtin_codes[NPY_UINT] = code_of_integer(sizeof(int), false);
  builtin_codes[NPY_LONG] = code_of_integer(sizeof(long), true);
  builtin_codes[NPY_ULONG] = code_of_integer(sizeof(long), false);
  builtin_codes[NPY_LONGLONG] = code_of_integer(sizeof(long long), true);
  builtin_codes[NPY_ULONGLONG] = code_of_integer(sizeof(long long), false);
  set(NPY_HALF, DType::Float16);
  set(NPY_FLOAT, DType::Float32);
  set(NPY_DOUBLE, DType::Float64);
  set(NPY_CFLOAT, DType::Complex64);
  set(NPY_CDOUBLE, DType::Complex128);
  const int numbers[] = {NPY_BOOL,  NPY_INT8,    NPY_INT16,   NPY_INT32,     NPY_INT64,
                         NPY_UINT8, NPY_UINT16,  NPY_UINT32,  NPY_UINT64,    NPY_FLOAT16,
                         -1,        NPY_FLOAT32, NPY_FLOAT64, NPY_COMPLEX64, NPY_COMPLEX128};
  for (int code = 0; code < static_cast<int>(sizeof numbers / sizeof *numbers); ++code) {
    if (numbers[code] >= 0 && !(descrs[code] = PyArray_DescrFromType(numbers[code]))) return -1;
  }
  return 0;
}

void register_numpy_dtype(DType dtype, PyArray_Descr* descr) {
  PyArray_Descr*& place = descrs[static_cast<int>(dtype)];
  Py_INCREF(descr);
  Py_XDECREF(place);
  place = descr;
  if (dtype == DType::BFloat16) bfloat16_number = descr->type_num;
}

bool dtype_from_numpy(PyArray_Descr* descr, DType* dtype) {
  int number = descr->type_num;
  if (JATO_LIKELY(number >= 0 && number < kBuiltin)) {
    if (builtin_codes[number] >= 0) {
      *dtype = static_cast<DType>(builtin_codes[number]);
      return true;
    }
    PyArray_Descr* float0 = descrs[static_cast<int>(DType::Float0)];
    if (number == NPY_VOID && float0 && PyArray_EquivTypes(descr, float0)) {
      *dtype = DType::Float0;
      return true;
    }
    return false;
  }
  if (number == bfloat16_number && number >= 0) {
    *dtype = DType::BFloat16;
    return true;
  }
  return false;
}

PyArray_Descr* numpy_descr(DType dtype) { return descrs[static_cast<int>(dtype)]; }

bool is_masked(PyObject* array) {
  if (JATO_LIKELY(PyArray_CheckExact(array))) return false;
  static PyObject* name = PyUnicode_InternFromString("numpy.ma");
  PyRef module = PyRef::steal(PyImport_GetModule(name));  // absent: then nobody has such an array
  PyRef type = PyRef::steal(module ? PyObject_GetAttrString(module.get(), "MaskedArray") : nullptr);
  const int status = type ? PyObject_IsInstance(array, type.get()) : 0;
  if (PyErr_Occurred()) PyErr_Clear();
  return status > 0;
}

DType canonical_dtype(DType dtype) {
  if (x64_enabled()) return dtype;
  switch (dtype) {
    case DType::Int64:
      return DType::Int32;
    case DType::UInt64:
      return DType::UInt32;
    case DType::Float64:
      return DType::Float32;
    case DType::Complex128:
      return DType::Complex64;
    default:
      return dtype;
  }
}

}  // namespace jato::bind
