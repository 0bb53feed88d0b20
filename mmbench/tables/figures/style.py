"""The one style of all pictures: colours and marks by which machines are told apart."""

from __future__ import annotations

#: After Okabe and Ito, apart for colour-blind eyes; the light ones are darkened, so that each has
#: a contrast of 3 on white and on near-black.
COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#b97900",
    "#6b7785",
    "#7a5fb5",
    "#4c8c2b",
)
