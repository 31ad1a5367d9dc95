// Number slots of Array: each hands its operands to a Python function of the operator table.
#include <string_view>

#include "array.h"
#include "numpy_api.h"
#include "state.h"

namespace jato::bind {

namespace {

enum Operator {
  kAdd,
  kSub,
  kMul,
  kTruediv,
  kFloordiv,
  kMod,
  kDivmod,
  kPow,
  kMatmul,
  kAnd,
  kOr,
  kXor,
  kLshift,
  kRshift,
  kLt,
  kLe,
  kEq,
  kNe,
  kGt,
  kGe,
  kNeg,
  kPos,
  kAbs,
  kInvert,
  kGetitem,
  kCount,
};

constexpr const char* kNames[kCount] = {
    "add", "sub", "mul", "truediv", "floordiv", "mod",    "divmod",  "pow", "matmul",
    "and", "or",  "xor", "lshift",  "rshift",   "lt",     "le",      "eq",  "ne",
    "gt",  "ge",  "neg", "pos",     "abs",      "invert", "getitem",
};

PyObject* operators[kCount];
PyObject* jax_array_name = nullptr;

int position_of(std::string_view name) {
  for (int i = 0; i < kCount; ++i) {
    if (name == kNames[i]) return i;
  }
  return -1;
}

enum class Operand { Accepted, Rejected, Convertible };

// Lists are passed on, to get a message that names them instead of Python's "unsupported operand".
Operand operand_kind(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (JATO_LIKELY(type == array_class || type == &PyFloat_Type || type == &PyLong_Type ||
                  type == &PyBool_Type || type == &PyComplex_Type))
    return Operand::Accepted;
  if (is_tracer(object)) return Operand::Rejected;
  if (PyArray_Check(object) || PyArray_IsScalar(object, Generic) || PyLong_Check(object) ||
      PyFloat_Check(object) || PyComplex_Check(object) || PyList_Check(object))
    return Operand::Accepted;
  PyObject* converter = PyObject_GetAttr(reinterpret_cast<PyObject*>(type), jax_array_name);
  if (!converter) {
    PyErr_Clear();
    return Operand::Rejected;
  }
  Py_DECREF(converter);
  return Operand::Convertible;
}

PyObject* run_operator(int op, PyObject* left, PyObject* right, PyObject* other) {
  switch (operand_kind(other)) {
    case Operand::Accepted:
      break;
    case Operand::Rejected:
      Py_RETURN_NOTIMPLEMENTED;
    case Operand::Convertible: {
      PyRef converted = PyRef::steal(PyObject_CallMethodNoArgs(other, jax_array_name));
      if (!converted) return nullptr;
      return run_operator(op, other == left ? converted.get() : left, other == left ? right : converted.get(),
                          converted.get());
    }
  }
  if (JATO_UNLIKELY(!operators[op])) {
    PyErr_Format(PyExc_TypeError, "operator %s of arrays is not set (set_array_operators)", kNames[op]);
    return nullptr;
  }
  return call2(operators[op], left, right);
}

template <int op>
PyObject* binary(PyObject* left, PyObject* right) {
  return run_operator(op, left, right, is_array(left) ? right : left);
}

PyObject* power(PyObject* left, PyObject* right, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary<kPow>(left, right);
}

template <int op>
PyObject* unary(PyObject* self) {
  if (!operators[op]) {
    PyErr_Format(PyExc_TypeError, "operator %s of arrays is not set (set_array_operators)", kNames[op]);
    return nullptr;
  }
  return call1(operators[op], self);
}

PyObject* set_array_operators(PyObject*, PyObject* table) {
  if (!PyDict_Check(table)) {
    PyErr_Format(PyExc_TypeError, "set_array_operators: expected a dict, got %s", Py_TYPE(table)->tp_name);
    return nullptr;
  }
  if (!jax_array_name && !(jax_array_name = PyUnicode_InternFromString("__jax_array__"))) return nullptr;
  PyObject *key, *value;
  Py_ssize_t next = 0;
  while (PyDict_Next(table, &next, &key, &value)) {
    const char* text = PyUnicode_AsUTF8(key);
    if (!text) return nullptr;
    int position = position_of(text);
    if (position < 0) {
      PyErr_Format(PyExc_ValueError, "set_array_operators: unknown operator %R", key);
      return nullptr;
    }
    set_global(operators[position], value);
  }
  Py_RETURN_NONE;
}

PyObject* array_operators(PyObject*, PyObject*) {
  PyRef table = PyRef::steal(PyDict_New());
  if (!table) return nullptr;
  for (int i = 0; i < kCount; ++i) {
    if (operators[i] && PyDict_SetItemString(table.get(), kNames[i], operators[i]) < 0) return nullptr;
  }
  return table.release();
}

template <class F>
constexpr PyType_Slot slot(int id, F* function) {
  return {id, reinterpret_cast<void*>(function)};
}

}  // namespace

PyObject* operator_named(const char* name) {
  int position = position_of(name);
  return position < 0 ? nullptr : operators[position];
}

PyObject* array_compare(PyObject* self, PyObject* other, int operation) {
  switch (operation) {
    case Py_LT:
      return run_operator(kLt, self, other, other);
    case Py_LE:
      return run_operator(kLe, self, other, other);
    case Py_EQ:
      return run_operator(kEq, self, other, other);
    case Py_NE:
      return run_operator(kNe, self, other, other);
    case Py_GT:
      return run_operator(kGt, self, other, other);
    default:
      return run_operator(kGe, self, other, other);
  }
}

PyType_Slot number_slots[] = {
    slot(Py_nb_add, binary<kAdd>),
    slot(Py_nb_subtract, binary<kSub>),
    slot(Py_nb_multiply, binary<kMul>),
    slot(Py_nb_true_divide, binary<kTruediv>),
    slot(Py_nb_floor_divide, binary<kFloordiv>),
    slot(Py_nb_remainder, binary<kMod>),
    slot(Py_nb_divmod, binary<kDivmod>),
    slot(Py_nb_power, power),
    slot(Py_nb_matrix_multiply, binary<kMatmul>),
    slot(Py_nb_and, binary<kAnd>),
    slot(Py_nb_or, binary<kOr>),
    slot(Py_nb_xor, binary<kXor>),
    slot(Py_nb_lshift, binary<kLshift>),
    slot(Py_nb_rshift, binary<kRshift>),
    slot(Py_nb_negative, unary<kNeg>),
    slot(Py_nb_positive, unary<kPos>),
    slot(Py_nb_absolute, unary<kAbs>),
    slot(Py_nb_invert, unary<kInvert>),
};
const int num_number_slots = static_cast<int>(sizeof number_slots / sizeof *number_slots);

PyMethodDef array_operator_functions[] = {
    {"set_array_operators", set_array_operators, METH_O,
     "set_array_operators(dict): functions of (x, y) or (x) by name: add sub mul truediv floordiv mod divmod "
     "pow "
     "matmul and or xor lshift rshift lt le eq ne gt ge neg pos abs invert getitem; None takes one away"},
    {"array_operators", array_operators, METH_NOARGS,
     "array_operators() -> dict: the operators that are set"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace jato::bind
