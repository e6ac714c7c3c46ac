#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/exchange/args.hpp"
#include "core/exchange/python/object.hpp"
#include "core/exchange/reading.hpp"
#include "core/exchange/text/python.hpp"

namespace tidemark::exchange {

/// A name that was given a value somewhere.
struct PyAssignment {
  std::string name;
  PyValue value;
};

/// Parameters of an object, or of a part of it, are trained from here on, or not.
struct PyFreezing {
  int root = -1;     ///< the object; -1 where nobody knows
  std::string part;  ///< "model.layers"; empty: all of it
  NameTest test;     ///< which of those parameters; unknown: all
  bool trained = false;
  bool is_known = false;  ///< what it is about, and whether it is reached
  Origin place;
};

/// A program of Python as far as reading tells: every statement is followed once, functions when they are called (and
/// those that nobody calls at the end), both sides of a test that nobody can decide. Nothing is run.
class PyProgram {
 public:
  PyProgram(const Source& main, Sources all);

  /// A cell of a notebook, or the whole script.
  void run(std::string_view text, int cell);
  /// A configuration that a notebook writes, as a call that has its keys as keywords; keys without a
  /// line stand in the cell that starts the program.
  void add_document(const Node& node, const std::string& name, int cell, int lines_before, int launch_cell);
  /// Functions that nobody called, with their defaults.
  void run_the_rest();

  /// The flags of a command line that starts this program, by their names without dashes: parsers of arguments then
  /// return them. Before `run`.
  void start_with(const std::deque<Arg>& given);

  std::deque<PyObject> objects;
  std::vector<PyAssignment> assignments;
  std::vector<PyFreezing> freezing;  ///< requires_grad, in order
  std::vector<std::string> flags;    ///< of its command that its own parser takes
  std::vector<std::string> files;    ///< of the program that it could not open: YAML, JSON

  /// Calls of that name, in order.
  std::vector<const PyObject*> calls(std::string_view ending) const;

 private:
  using Kind = PyValue::Kind;
  using Scope = std::map<std::string, PyValue>;

  // Bounds, which no program that trains reaches.
  static constexpr long kMostSteps = 400'000;  // statements and expressions
  static constexpr int kDeepest = 40;          // expressions, calls and modules in one another
  static constexpr int kDeepestCall = 30;
  static constexpr int kDeepestImport = 8;
  static constexpr std::size_t kMostFrames = 30;
  static constexpr int kMostRuns = 3;  // of one function
  static constexpr std::size_t kMostObjects = 20'000;
  static constexpr std::size_t kMostMembers = 2000;  // of an object or a dictionary
  static constexpr std::size_t kMostFreezing = 24;

  struct Function {
    const PyStatement* code = nullptr;
    Scope* globals = nullptr;  // of its module
    std::string file;          // where it stands
    int cell = -1;             // of a notebook
    int runs = 0;              // how often it was called
  };
  struct Class {
    std::string name;
    std::vector<std::string> bases;      // and theirs
    PyFields fields;                     // with their defaults
    std::map<std::string, int> methods;  // functions by their names
    Origin place;
  };
  struct Frame {
    Scope* globals = nullptr;
    Scope locals;
    bool own_locals = false;  // it is a function's
    PyValue result;           // what it returns
    bool returned = false;
    int unsure = 0;  // open tests that nobody could decide
    NameTest test;   // the one open test of a parameter's name
  };

  // program.cpp: statements
  void run_all(const std::vector<PyStatement>& statements);
  void run_one(const PyStatement& statement);
  void run_return(const PyStatement& statement);
  void run_if(const PyStatement& statement);
  void run_sides(const NameTest& test, const PyStatement& statement);
  void run_with(const PyStatement& statement);
  bool is_unsure() const;
  PyValue keep(PyObject made);
  Origin place_of(const PyExpr& expression) const;

  // assignments.cpp
  void run_assign(const PyStatement& statement);
  void run_for(const PyStatement& statement);
  void assign(const PyExpr& target, const PyValue& value);
  void assign_member(const PyExpr& target, const PyValue& value);
  void assign_name(const std::string& name, const PyValue& value);
  void remember(const std::string& name, PyValue value);
  PyValue* lookup(const std::string& name);

  // requires_grad.cpp
  void set_trained(const PyValue& of, const PyValue& value, const Origin& place);
  static PyValue each(const PyValue& all, const PyObject* call);

  // modules.cpp
  void run_import(const PyStatement& statement);
  void import_whole(const PyStatement& statement);
  bool import_sibling(const PyStatement& statement);
  Scope* module_of(const std::string& name);
  void run_module(const Source& source, Scope& scope);
  PyValue document(const std::string& path);

  // classes.cpp
  void define_class(const PyStatement& statement);
  PyValue class_field(const PyStatement& statement);
  PyValue made_by_factory(const PyExpr& field);
  PyValue instance(int index, PyObject made);

  // expressions.cpp
  PyValue evaluate(const PyExpr& expression);
  PyValue evaluate_plain(const PyExpr& expression);
  PyValue composed(const PyExpr& expression);
  PyValue literal(const PyExpr& expression);
  PyValue attribute(const PyExpr& expression);
  PyValue subscript(const PyExpr& expression);
  PyValue list(const PyExpr& expression);
  PyValue dict(const PyExpr& expression);
  PyValue compare(const std::string& op, const PyValue& left, const PyValue& right);
  PyValue choice(const PyExpr& expression);
  PyValue joined(const PyExpr& expression);

  // calls.cpp, builtins.cpp, methods.cpp: a call that nothing is known of is kept as an object
  static void update(PyValue* known, const PyObject& by);
  void take_argument(PyObject& call, const std::string& name, const PyExpr& expression);
  PyValue call(const PyExpr& expression);
  int define_function(const PyStatement& statement);
  Scope parameters_of(const PyStatement& code, const PyObject& call, const PyValue* self);
  PyValue call_function(int index, const PyObject& call, const PyValue* self);
  std::optional<PyValue> builtin(const PyObject& call);
  PyValue get_attribute(const PyObject& call);
  PyValue method(const PyValue& self, const std::string& name, PyObject call);

  // command_line.cpp
  const PyValue* commanded(const std::string& key);
  void add_argument(PyObject& parser, const PyObject& call);
  std::optional<PyValue> parser_method(const PyValue& self, const std::string& name, const PyObject& call);
  PyValue parsed_arguments(const PyObject& parser, const std::string& name);

  PyObject& object(const PyValue& value) { return objects[static_cast<std::size_t>(value.index)]; }
  const Class& class_of(const PyValue& value) const { return classes_[static_cast<std::size_t>(value.index)]; }

  const Source& main_;
  Sources all_;
  std::deque<std::vector<PyStatement>> code_;  // of all that was run
  std::deque<Function> functions_;
  std::deque<Class> classes_;
  std::map<std::string, Scope> modules_;
  std::vector<Frame> frames_;
  Scope globals_;
  PyFields command_;        // the command's flags
  bool commanded_ = false;  // it is known
  std::string file_;        // that is run
  int cell_ = -1;           // of it
  int depth_ = 0;
  long steps_ = 0;
  bool resting_ = false;  // what nobody called is run
};

}  // namespace tidemark::exchange
