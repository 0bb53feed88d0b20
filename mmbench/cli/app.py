"""The commands of the command line, with their options and their printed output.

docs/commands.md has the exit codes. Each command imports its modules when it is called, so that
``mmbench --help`` does not wait for scikit-learn.
"""

import errno
import gc
import os
import warnings
from contextlib import suppress
from glob import escape, glob
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from mmbench import __version__
from mmbench.cli import EXIT_INTERRUPTED, INTERRUPTED
from mmbench.commands.options import has_terminal
from mmbench.commands.options import to_stderr as say
from mmbench.errors import UserError, visible
from mmbench.results.unpack import is_bundle, results_folder

EXIT_WRONG_INPUT = 2


class OneLineErrors(TyperGroup):
    """A group of commands that reports a user's error as one line, without a traceback."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Parse the command line. If Ctrl-C interrupts the parsing, print one line."""
        try:
            return super().make_context(*args, **kwargs)
        except KeyboardInterrupt:
            raise _stop(INTERRUPTED, EXIT_INTERRUPTED) from None

    def invoke(self, ctx: Any) -> Any:
        """Run a command. After a user's error or Ctrl-C, print one line and set the exit code."""
        _name_another_checkout()
        try:
            return super().invoke(ctx)
        except UserError as error:
            raise _stop(str(error), EXIT_WRONG_INPUT) from None
        except KeyboardInterrupt:
            raise _stop(INTERRUPTED, EXIT_INTERRUPTED) from None
        except OSError as error:
            if error.errno is None or error.errno == errno.EPIPE:  # typer handles closed pipes
                raise
            place = "" if error.filename is None else f"{error.filename}: "
            raise _stop(f"{place}{error.strerror}", EXIT_WRONG_INPUT) from None


def _stop(message: str, code: int) -> typer.Exit:
    """Print a message as one line, and return an exception that ends the program with `code`."""
    say("mmbench: " + " ".join(message.split()))
    return typer.Exit(code)


def _name_another_checkout() -> None:
    """Print one line if the current folder is a checkout of mmbench, and another mmbench runs."""
    running, here = Path(__file__).parents[1], Path("mmbench")
    with suppress(OSError):  # the current folder may be unreadable
        if (here / "cli" / "app.py").is_file() and not here.samefile(running):
            way = "pip install -e . installs the checkout in the current folder"
            say(f"mmbench: {running} runs; {way}")


def echo(text: str, **options: Any) -> None:
    """Print a text in which escape sequences replace control characters."""
    typer.echo(visible(text), **options)


def group(text: str, **options: Any) -> typer.Typer:
    """Return an empty group of commands with a help text."""
    return typer.Typer(help=text, no_args_is_help=True, rich_markup_mode=None, **options)


def complete_config(incomplete: str) -> list[str]:
    """Return the names of experiments and YAML files that begin with the text `incomplete`."""
    from mmbench.config.files import config_files

    files = (name for name in glob(f"{escape(incomplete)}*") if Path(name).suffix in ("", ".yaml"))
    return [name for name in (*config_files(), *files) if name.startswith(incomplete)]


app = group(
    "Max-margin classifiers, and the experiments that reproduce their papers.",
    name="mmbench",
    cls=OneLineErrors,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data_app = group("Look at, fetch and verify data sets.", name="data")
check_app = group("Check a machine of your own.", name="check")
config_app = group("Show the YAML files of experiments.", name="config")
list_app = group("List machines, data sets, layouts, figures and experiments.", name="list")
for _part in (data_app, check_app, config_app, list_app):
    app.add_typer(_part)


# -- options of several commands ---------------------------------------------------------------


def argument(metavar: str, text: str, default: Any = ..., **settings: Any) -> Any:
    """Return a positional argument of a command, with its name and help text."""
    return typer.Argument(default, metavar=metavar, help=text, **settings)


def option(metavar: str, text: str, *names: str, default: Any = None, **settings: Any) -> Any:
    """Return an option of a command that takes a value.

    If `names` is empty, the option has the same name as the parameter of the command's function.
    """
    return typer.Option(default, *names, metavar=metavar, help=text, **settings)


def flag(name: str, text: str) -> Any:
    """Return an option of a command that takes no value."""
    return typer.Option(False, name, help=text)


COMPLETED = {"show_default": False, "autocompletion": complete_config}
MIRROR = option(
    "DIR_OR_URL", "Folder or URL with data files, to work offline.", envvar="MMBENCH_MIRROR"
)
STORE = option(
    "DIR", "Local store of data files.", "--data", default=Path("datasets"), envvar="MMBENCH_DATA"
)
RESULTS = option("DIR", "Folder in which records are stored.", default=Path("results"))
JOBS = option("N", "Parallel processes [default: physical cores].", "--jobs", "-j", min=1)
SET = option(
    "KEY=VALUE",
    "Set a key, as in 'machines.svm.grid.C=[1,10]' or 'datasets[0].drop=[id]'; repeatable.",
    "--set",
)


def _before_reading(ctx: typer.Context, paths: list[Path]) -> list[Path]:
    """Check the paths before the slow imports, and pause the garbage collection: a command that
    only reads uses almost all its objects until it ends.
    """
    for path in paths:
        if not is_bundle(path):
            results_folder(path)
    gc.disable()
    ctx.call_on_close(gc.enable)
    return paths


#: Argument of the commands that read results of experiments or reference tables.
TABLES = argument(
    "RESULTS",
    "Folders of results, or of experiments in them; bundles; reference/NAME comes with mmbench.",
    callback=_before_reading,
)
OUTPUT = option("FILE", "Write to FILE.")
MIX = flag("--mix", "Allow records of different settings in one table.")


@app.callback(invoke_without_command=True)
def _common(version: bool = flag("--version", "Print the version and exit.")) -> None:
    if version:
        echo(f"mmbench {__version__}")
        raise typer.Exit


def _search_here() -> None:
    """Let classifiers, transformers and machines that the user names lie in the current folder."""
    from mmbench.plugins import FOLDERS

    with suppress(OSError):  # the current folder was deleted
        FOLDERS[:] = [os.getcwd()]


# -- experiments -------------------------------------------------------------------------------


@app.command()
def run(
    configs: list[str] = argument(
        "CONFIG",
        "YAML files, results folders, bundles, or names from 'mmbench list configs'.",
        **COMPLETED,
    ),
    results: Path | None = option("DIR", "Folder for records [default: results, or CONFIG's own]."),
    jobs: int | None = JOBS,
    mirror: str | None = MIRROR,
    store: Path = STORE,
    only: list[str] | None = option(
        "FIELD=NAME", "Run one dataset=NAME or machine=NAME; repeatable."
    ),
    dry_run: bool = flag("--dry-run", "Print the jobs with counts and memory, and run nothing."),
    smoke: bool = flag("--smoke", "Run a quick check: real data, few splits and grid points."),
    set: list[str] | None = SET,
    strict: bool = flag("--strict", "Exit with code 1 also if a fit is not optimal."),
    time_limit: str | None = option("TIME", "Stop a job after this time, such as 90s or 1h."),
    memory_limit: str | None = option("SIZE", "Stop a job that exceeds this memory, such as 8GB."),
    scheduler: str | None = option(
        "ADDRESS", "Run on this Dask cluster, a 'local' one, or 'slurm', 'pbs', 'sge', 'lsf'."
    ),
    rerun: str | None = option("changed", "Run jobs again if their machine's sources changed."),
    sample: int | None = option("N", "Run N jobs of each experiment, drawn at random.", min=1),
    sample_seed: int = option("SEED", "Seed of --sample.", default=0),
    trusted: bool = flag("--trusted", "Let a bundle use classes of other packages."),
) -> None:
    """Run experiments; jobs that have a result are not run again."""
    options = {name: value for name, value in locals().items() if value is not None}
    del options["configs"], options["dry_run"]
    from mmbench.config.files import load_yaml

    _search_here()
    for name in configs:  # report unknown names and too large experiments before the slow imports
        if not is_bundle(name):
            load_yaml(name, count=not set)
    if dry_run:
        from mmbench.commands import dry_run as command

        echo(command.dry_run(configs, **options))
        return
    from mmbench.commands.run import run as start

    raise typer.Exit(max(one.exit_code for one in start(configs, say=say, **options)))


@app.command()
def easy(
    path: Path = argument("FILE", "CSV, ARFF, Parquet, svmlight or npz, compressed or not."),
    target: str | None = option("COLUMN", "The column of the classes, by name or number."),
    results: Path = RESULTS,
    jobs: int | None = JOBS,
    set: list[str] | None = SET,
    metric: str = option(
        "NAME", "Metric that selects parameters and comes first.", default="accuracy"
    ),
    all_machines: bool = flag("--all", "Run all machines, which takes many times as long."),
    show: bool = flag("--show", "Print the experiment as YAML, as a template, and run nothing."),
    save: Path | None = option(
        "FILE", "Train the best machine by --metric again and write it (.joblib)."
    ),
    calibrate: str | None = option("METHOD", "Save with probabilities: sigmoid or isotonic."),
) -> None:
    """Compare machines on a table of your own data.

    Max-margin machines are compared with linear classifiers, gradient boosting and a random forest
    by cross-validation with five folds. Machines with a kernel use at most 1000 training rows per
    fold, and the random forest at most 5000; their names say so. --show prints all settings.
    """
    from mmbench.commands import easy as command
    from mmbench.commands.refit import check_calibration, check_file, refit, write

    _search_here()
    if save is not None:
        check_file(save)
    elif calibrate is not None:
        raise UserError("--calibrate has no effect without --save FILE.joblib")
    check_calibration(calibrate)
    if show:
        from mmbench.config.read import to_yaml

        settings = [*command.by_metric(metric), *(set or ())]
        echo(to_yaml(command.config_for(path, target, settings, all_machines, say)), nl=False)
        return
    found = command.easy(
        path,
        target,
        results,
        metric=metric,
        all_machines=all_machines,
        say=say,
        jobs=jobs,
        set=set or (),
    )
    if found.text:
        echo(found.text.removesuffix("\n"))
    if save is not None and found.text:
        model = refit(found.folder, calibrate=calibrate, say=say)
        write(model, save)
        name, source = model.provenance_["machine"], save.with_suffix(".json")
        say(f"{save}: {name}; provenance: {source}")
    raise typer.Exit(found.exit_code)


# -- results -----------------------------------------------------------------------------------


@app.command()
def table(
    results: list[Path] = TABLES,
    fmt: str | None = option("markdown|csv|latex", "Format [default: by --output].", "--format"),
    layout: str | None = option("NAME", "Layout [default: the experiment's own]."),
    output: Path | None = OUTPUT,
    mix: bool = MIX,
    metric: list[str] | None = option("NAME", "Show auc, mcc, or another metric; repeatable."),
    include_failed: bool = flag("--include-failed", "Include splits with failed fits in means."),
    no_bold: bool = flag("--no-bold", "Print the best means without bold type."),
    block: int | None = option("K", "Show only the block with this number, counted from 1."),
    caption: str = option("TEXT", "Caption of the first block in LaTeX.", default=""),
    only: list[str] | None = option("dataset=NAME|machine=NAME", "Show only these; repeatable."),
) -> None:
    """Print tables of the results, beside the published values."""
    from mmbench.commands.outputs import table as build

    shown: dict[str, Any] = {"block": block, "caption": caption, "only": only or ()}
    options = (mix, say, metric or (), include_failed, not no_bold)
    text = build(results, fmt, layout, output, *options, **shown)
    if output is None:
        echo(text.removesuffix("\n"))


@app.command()
def figure(
    name: str = argument("NAME", "A name from 'mmbench list figures'."),
    results: list[Path] = TABLES,
    output: Path | None = option(
        "FILE", "Image file [default: NAME.png beside the records, or here for a reference table]."
    ),
) -> None:
    """Draw a figure of the results, beside the published values."""
    from mmbench.commands.outputs import figure as draw

    echo(draw(name, results, output, say))


@app.command()
def compare(
    before: Path = argument(
        "A", "Earlier result: a folder, bundle, reference/NAME, or table as CSV."
    ),
    after: Path = argument("B", "Later result of the same experiments."),
    part: bool = flag("--part", "Compare only what B has, a part that --sample or --only ran."),
) -> None:
    """Compare two results, cell by cell, and print the differences.

    Exit codes: 0 if the results agree, 1 if a cell differs or is missing, 3 if nothing could be
    compared.
    """
    from mmbench.commands import outputs

    changes = outputs.compare(before, after, say, part)
    echo(outputs.comparison_text(changes))
    raise typer.Exit(changes.exit_code)


@app.command()
def report(
    results: list[Path] = TABLES,
    output: Path = option(
        "DIR", "Folder of the report: a new folder, or an earlier report.", default=Path("report")
    ),
    mix: bool = MIX,
) -> None:
    """Write the results as a web site that needs no server.

    If several of the RESULTS are folders of the same experiment, the report compares them.
    """
    from mmbench.commands.outputs import report as write

    echo(f"written to {write(results, output, mix, say)}")


@app.command()
def export(
    results: list[Path] = TABLES,
    fmt: str | None = option("csv|parquet", "Format [default: by --output].", "--format"),
    output: Path | None = OUTPUT,
    predictions: bool = flag("--predictions", "Write one row per test row, not per split."),
    bundle: Path | None = option(
        "FILE.zip", "Write a bundle with which other people check and repeat the experiments."
    ),
    openml: bool = flag("--openml", "Write runs of OpenML tasks into the folder --output."),
    publish: bool = flag("--publish", "Upload these runs with your key of OpenML."),
    store: Path = STORE,
) -> None:
    """Write stored records as a plain table, one row per split."""
    from mmbench.commands.outputs import export as write

    text = write(results, fmt, output, predictions, say, bundle, openml, store, publish)
    echo(text, nl=output is not None or bundle is not None)


@app.command()
def merge(
    results: list[Path] = argument(
        "RESULTS", "Folders of results of the same experiments, or of experiments in them."
    ),
    output: Path = option(
        "DIR", "Folder for the records of all parts.", "--output", "-o", default=...
    ),
    first: bool = flag("--first", "Where results of a job differ, take the first folder's."),
) -> None:
    """Join the records of experiments that were run in parts."""
    from mmbench.commands.merge import merge as join

    for one in join(*results, output=output, first=first, say=say):
        again = f", {one.equal} equal duplicates left out" if one.equal else ""
        counts = f"{one.added} records added{again}; {one.done} of {one.planned} jobs are done"
        echo(f"{one.name}: {counts}; records are in {one.folder}")


@app.command()
def clean(
    results: list[Path] = argument("RESULTS", "Folders of results, or of experiments in them."),
    yes: bool = flag("--yes", "Remove the records instead of counting them."),
) -> None:
    """Count or remove records that the current settings do not use."""
    from mmbench.commands.outputs import clean as remove

    for line in remove(results, yes):
        echo(line)


@app.command()
def cite(
    name: str | None = argument(
        "MACHINE|CONFIG", "A machine, or an experiment [default: mmbench alone].", None, **COMPLETED
    ),
) -> None:
    """Print references of a machine, experiment or mmbench as BibTeX."""
    from mmbench.commands.cite import cite

    echo(cite(name))


# -- data --------------------------------------------------------------------------------------

Names = list[str] | None
NAMES = argument("NAME", "Data sets [default: all].", None, show_default=False)


@data_app.command("list")
def list_data(
    mirror: str | None = MIRROR,
    store: Path = STORE,
    licence: bool = flag("--licence", "List the licences instead of sizes and locations."),
) -> None:
    """List the data sets with a card, and the locations of their files."""
    from mmbench.commands.data import licences, summaries

    echo_columns(licences() if licence else summaries(store, mirror))


@data_app.command()
def info(
    name: str = argument("NAME", "A data set."), mirror: str | None = MIRROR, store: Path = STORE
) -> None:
    """Show the card of a data set and the source of its local files."""
    from mmbench.commands.data import info as card_text

    echo(card_text(name, store, mirror))


@data_app.command()
def fetch(names: Names = NAMES, mirror: str | None = MIRROR, store: Path = STORE) -> None:
    """Fetch data sets into the local store and check their hashes."""
    _echo_outcomes("fetch", names, mirror, store)


@data_app.command()
def verify(names: Names = NAMES, mirror: str | None = MIRROR, store: Path = STORE) -> None:
    """Compare the data files on this computer with their cards."""
    _echo_outcomes("verify", names, mirror, store)


def _echo_outcomes(verb: str, names: list[str] | None, mirror: str | None, store: Path) -> None:
    """Fetch or verify data sets, print a message for each, and exit with code 1 after an error."""
    from mmbench.commands import data

    good = True
    for outcome in getattr(data, verb)(names or None, store, mirror, progress=has_terminal()):
        echo(f"{outcome.name}: {outcome.message}", err=not outcome.ok)
        good = good and outcome.ok
    raise typer.Exit(not good)


@app.command()
def certify(
    model: Path = argument("MODEL", "A model file of libsvm or liblinear, or a .joblib file."),
    data: Path = argument("DATA", "The training data: a table or a svmlight file."),
    target: str | None = option("COLUMN", "Column of the class labels; not needed for svmlight."),
    C: float | None = option("NUMBER", "Penalty on slack, if the file has no C.", "--C", min=0),
    trusted: bool = flag("--trusted", "Read a .joblib file, which runs code stored in it."),
    set: list[str] | None = option(
        "KEY=VALUE", "Set a key of the table, as in 'datasets[0].drop=[id]'; repeatable.", "--set"
    ),
    output: Path | None = OUTPUT,
) -> None:
    """Recompute the certificate of a stored support vector machine.

    For each pair of classes, 'gap' is the relative distance of the model's objective to a proven
    lower bound. mmbench also computes the optimum of the same problem, and 'status' is the status
    of this solution. The model is compared with the optimum on the training rows: 'decision_change'
    is the largest difference between the two decision values of a row, and 'labels_changed' is the
    number of rows with different predicted labels.

    A model file of libsvm contains neither the penalty C nor class weights. Without --C, the
    largest dual variable is used as C of all rows.
    """
    from mmbench.commands.certify import certify_file
    from mmbench.tables.render import csv_text

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("ignore", RuntimeWarning)  # infinite values are named
        certificate = certify_file(model, data, target, C, trusted, set or ())
    for one in found:
        say(f"warning: {one.message}")
    # -0 is printed as 0
    echo(certificate.T.to_string(header=False, float_format=lambda value: f"{value + 0.0:.6g}"))
    if output is not None:
        output.write_text(csv_text(certificate), encoding="utf-8")


@app.command()
def audit(
    tables: list[str] = argument(
        "TABLE", "CSV files with dataset, machine and value; or names of published tables."
    ),
    contains: list[str] | None = option(
        "MACHINE=OTHER", "MACHINE can be no worse than OTHER, with the same grid; repeatable."
    ),
    output: Path | None = option("FILE", "Write the report to FILE, as .html or Markdown."),
) -> None:
    """Search printed tables for faults that the tables alone reveal.

    The exit code is 0 if nothing was found, and 1 if there are findings. Optional columns, such as
    std, n_test and n_splits, allow more checks. Several tables are also compared with one another.
    """
    from mmbench.commands.audit import audit, pairs_of

    found = audit(*tables, contains=pairs_of(contains or ()), output=output)
    if output is None:
        echo(found.markdown().removesuffix("\n"))
    raise typer.Exit(found.exit_code)


# -- lists and checks --------------------------------------------------------------------------


def echo_columns(rows: list[tuple]) -> None:
    """Print rows of values in aligned columns."""
    from mmbench.commands.listing import aligned

    echo("\n".join(aligned(rows)))


@list_app.command()
def machines(aliases: bool = flag("--aliases", "Add names for certain parameters.")) -> None:
    """List the machines."""
    from mmbench.commands.listing import machine_rows

    echo_columns(machine_rows(aliases))


def _add_list(kind: str, text: str) -> None:
    def command() -> None:
        from mmbench.commands import listing

        echo_columns(getattr(listing, f"{kind}_rows")())

    list_app.command(f"{kind}s", help=text)(command)


_add_list("dataset", "List the data sets with a card.")
_add_list("layout", "List the table layouts.")
_add_list("figure", "List the figures.")
_add_list("config", "List the experiments of mmbench and of the folder configs/.")


@check_app.callback()
def _group() -> None:
    """Do nothing: without a callback, typer drops the name of a group with a single command."""


@config_app.command()
def show(name: str = argument("CONFIG", "A YAML file, or a name.", **COMPLETED)) -> None:
    """Print the YAML file of an experiment, as a template."""
    from mmbench.config.files import template

    echo(template(name), nl=False)


@config_app.command()
def schema() -> None:
    """Print the JSON Schema of YAML files, for editors."""
    from mmbench.config.model import schema as text

    echo(text(), nl=False)


@check_app.command()
def machine(name: str = argument("NAME", "A machine, or mypackage.module:Class.")) -> None:
    """Run the checks that every machine has to pass.

    The checks are the estimator checks of scikit-learn, and checks of the certificates.
    """
    from mmbench.commands.check import check_machine

    _search_here()
    lines, passed = check_machine(name)
    echo("\n".join(lines))
    raise typer.Exit(not passed)
