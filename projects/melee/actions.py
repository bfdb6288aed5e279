"""The game's action states: names, and the categories of a breakdown."""

from __future__ import annotations

_NAMES = """
    dead down; dead left; dead right; dead up; dead fly star; dead fly star ice; dead fly; dead fly splatter;
    dead fly splatter flat; dead fly splatter ice; dead fly splatter flat ice; nothing state; on halo descent;
    on halo wait; standing; walk slow; walk middle; walk fast; turning; turning run; dashing; running; run direct;
    run brake; knee bend; jumping forward; jumping backward; double jump forward; double jump backward; falling;
    falling forward; falling backward; falling aerial; falling aerial forward; falling aerial backward; dead fall;
    special fall forward; special fall back; tumbling; crouch start; crouching; crouch end; landing; landing special;
    neutral attack 1; neutral attack 2; neutral attack 3; looping attack start; looping attack middle;
    looping attack end; dash attack; ftilt high; ftilt high mid; ftilt mid; ftilt low mid; ftilt low; uptilt;
    downtilt; fsmash high; fsmash mid high; fsmash mid; fsmash mid low; fsmash low; upsmash; downsmash; nair; fair;
    bair; uair; dair; nair landing; fair landing; bair landing; uair landing; dair landing; damage high 1;
    damage high 2; damage high 3; damage neutral 1; damage neutral 2; damage neutral 3; damage low 1; damage low 2;
    damage low 3; damage air 1; damage air 2; damage air 3; damage fly high; damage fly neutral; damage fly low;
    damage fly top; damage fly roll; item pickup light; item pickup heavy; item throw light forward;
    item throw light back; item throw light high; item throw light low; item throw light dash; item throw light drop;
    item throw light air forward; item throw light air back; item throw light air high; item throw light air low;
    item throw heavy forward; item throw heavy back; item throw heavy high; item throw heavy low;
    item throw light smash forward; item throw light smash back; item throw light smash up;
    item throw light smash down; item throw light air smash forward; item throw light air smash back;
    item throw light air smash high; item throw light air smash low; item throw heavy air smash forward;
    item throw heavy air smash back; item throw heavy air smash high; item throw heavy air smash low;
    beam sword swing 1; beam sword swing 2; beam sword swing 3; beam sword swing 4; bat swing 1; bat swing 2;
    bat swing 3; bat swing 4; parasol swing 1; parasol swing 2; parasol swing 3; parasol swing 4; fan swing 1;
    fan swing 2; fan swing 3; fan swing 4; star rod swing 1; star rod swing 2; star rod swing 3; star rod swing 4;
    lip stick swing 1; lip stick swing 2; lip stick swing 3; lip stick swing 4; item parasol open; item parasol fall;
    item parasol fall special; item parasol damage fall; gun shoot; gun shoot air; gun shoot empty;
    gun shoot air empty; fire flower shoot; fire flower shoot air; item screw; item screw air; damage screw;
    damage screw air; item scope start; item scope rapid; item scope fire; item scope end; item scope air start;
    item scope air rapid; item scope air fire; item scope air end; item scope start empty; item scope rapid empty;
    item scope fire empty; item scope end empty; item scope air start empty; item scope air rapid empty;
    item scope air fire empty; item scope air end empty; lift wait; lift walk 1; lift walk 2; lift turn;
    shield start; shield; shield release; shield stun; shield reflect; tech miss up; lying ground up;
    lying ground up hit; ground getup; ground attack up; ground roll forward up; ground roll backward up;
    ground spot up; tech miss down; lying ground down; damage ground; neutral getup; getup attack;
    ground roll forward down; ground roll backward down; ground roll spot down; neutral tech; forward tech;
    backward tech; wall tech; wall tech jump; ceiling tech; shield break fly; shield break fall; shield break down u;
    shield break down d; shield break stand u; shield break stand d; shield break teeter; grab; grab pulling;
    grab running; grab running pulling; grab wait; grab pummel; grab break; throw forward; throw back; throw up;
    throw down; grab pulling high; grabbed wait high; pummeled high; grab pull; grabbed; grab pummeled; grab escape;
    grab jump; grab neck; grab foot; roll forward; roll backward; spotdodge; airdodge; rebound stop; rebound;
    thrown forward; thrown back; thrown up; thrown down; thrown down 2; platform drop; edge teetering start;
    edge teetering; bounce wall; bounce ceiling; bump wall; bump ceiling; sliding off edge; edge catching;
    edge hanging; edge getup slow; edge getup quick; edge attack slow; edge attack quick; edge roll slow;
    edge roll quick; edge jump 1 slow; edge jump 2 slow; edge jump 1 quick; edge jump 2 quick; taunt right;
    taunt left; shouldered wait; shouldered walk slow; shouldered walk middle; shouldered walk fast; shouldered turn;
    thrown ff; thrown fb; thrown f high; thrown f low; capture captain; capture yoshi; yoshi egg; capture koopa;
    capture damage koopa; capture wait koopa; thrown koopa f; thrown koopa b; capture koopa air;
    capture damage koopa air; capture wait koopa air; thrown koopa air f; thrown koopa air b; capture kirby;
    capture wait kirby; thrown kirby star; thrown copy star; thrown kirby; barrel wait; bury; bury wait; bury jump;
    damage song; damage song wait; damage song rv; damage bind; capture mewtwo; capture mewtwo air; thrown mewtwo;
    thrown mewtwo air; warp star jump; warp star fall; hammer wait; hammer walk; hammer turn; hammer knee bend;
    hammer fall; hammer jump; hammer landing; kinoko giant start; kinoko giant start air; kinoko giant end;
    kinoko giant end air; kinoko small start; kinoko small start air; kinoko small end; kinoko small end air; entry;
    entry start; entry end; damage ice; damage ice jump; capture masterhand; capture damage masterhand;
    capture wait masterhand; thrown masterhand; capture kirby yoshi; kirby yoshi egg; capture lea dead;
    capture like like; down reflect; capture crazyhand; capture damage crazyhand; capture wait crazyhand;
    thrown crazy hand; barrel cannon wait
"""
_FIRST_SPECIAL = 341
"""From here on an id means something else for each character."""
COUNT = 400

CATEGORIES = {
    "idle": (range(14, 15),),
    "movement": (range(15, 24), range(39, 42), range(244, 245)),
    "aerial": (range(24, 38), range(42, 44)),
    "ground attack": (range(44, 65),),
    "aerial attack": (range(65, 75),),
    "damage": (range(38, 39), range(75, 92)),
    "shield and dodge": (range(178, 183), range(233, 237)),
    "grab": (range(212, 233), range(239, 244)),
    "edge": (range(245, 264),),
    "special": (range(341, 398),),
}
"""Everything else is `OTHER`: dead, respawn, items, downed, tech, taunts, captured."""
OTHER = "other"


def _names() -> tuple[str, ...]:
    named = [name.strip() for name in " ".join(_NAMES.split()).split(";")]
    return tuple(named + [f"special {action}" for action in range(_FIRST_SPECIAL, COUNT)])


NAMES = _names()
"""Of each of the 400 action ids."""


def category(action: int) -> str:
    """The category of an action id."""
    return next((name for name, spans in CATEGORIES.items() if any(action in span for span in spans)), OTHER)
