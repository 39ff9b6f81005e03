"""A notation for checklists. The object is cheap to build; the rest is loaded when it is used."""

from signoff.notation import Command, Notation, NotationOption, Preset, SettingsSection


def recognize(content):
    """A YAML file with a `checklist:` is one of ours."""
    return "checklist" in content


NOTATION = Notation(
    name="checklist",
    label="checklist",
    compile="signoff_checklist.compiler:compile_file",
    recognize=recognize,
    scheme="checklist",
    resolve="signoff_checklist.compiler:compile_named",
    options=(NotationOption("owner", "--owner", "Who checks the items.", metavar="NAME"),),
    settings=SettingsSection(
        "checklists", "signoff_checklist.settings:ChecklistSection", "how items are presented"
    ),
    presets=(
        Preset(
            "checklist", "a checklist for a release", "signoff_checklist:preset",
            "flows/release.yaml", {"owner": "Ann"},
        ),
    ),
    commands={
        "checklists": Command("signoff_checklist.commands:checklists", "List named checklists.")
    },
)  # fmt: skip
