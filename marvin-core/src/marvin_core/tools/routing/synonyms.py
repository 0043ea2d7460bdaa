"""Words that people use for the same thing: a request may contain any of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from .words import stem

_GROUPS = """
movie film cinema picture
series show episode
cast actor actress star play
director directed direct
rating score imdb review
song track tune recording music single
band artist musician singer discography
album record release
picture image photo screenshot
screenshot capture viewport view look photo picture snapshot
paper study article publication published research literature scientific journal
preprint arxiv
meaning mean define definition
synonym pronounced pronunciation word
translate translation say language spanish french german english italian japanese chinese portuguese russian dutch
translate polish swedish norwegian danish finnish turkish greek arabic hindi korean czech hungarian ukrainian hebrew
recipe dish cook meal ingredient cuisine bake soup cake curry stew salad pie dessert chicken
recipe rice pasta bean lentil egg potato tomato breakfast dinner lunch leftover vegetable
weather forecast rain temperature sunny snow umbrella sunrise sunset wind storm cold hot
sunrise rise dawn
news headline press coverage happened
web internet online google website
page site website article
link url address bookmark
bookmark saved
feed rss atom blog post
download fetch grab save get
video youtube clip vimeo
audio mp3 sound music
playlist list
game steam play player videogame
shop store buy price cost
sale deal special offer
player playing play
own library
account profile user
map openstreetmap osm coordinate locate located
location place position where gps city coordinate whereabout
place restaurant cafe hotel pharmacy supermarket shop museum bar gas bakery pub dentist doctor hospital atm bank
place petrol pizza pizzeria sushi burger barber hairdresser cinema charger parking hostel eat food coffee
near nearby close closest nearest around within
route direction navigation way
distance far km long travel drive trip journey car bike train kilometre
traffic rush jam jammed current
alarm reminder remind wake alert
timer countdown stopwatch
stop end cancel kill halt off quit
cancel delete remove drop erase forget
remaining left remain until minute
calendar schedule appointment meeting event agenda
upcoming next soon tomorrow week
month january february march april may june july august september october november december
note notebook jot notes
todo task ticket chore
ticket issue
depend dependency block blocked wait
done finished complete completed close resolve
start begin starting progress
comment remark annotate note
topic channel ntfy push notification
send publish push notify
subscribe follow subscription
unsubscribe unfollow leave
preference prefer favourite favorite like allergic diet eat vegetarian vegan
home office gym school
address place
convert turn change conversion into
unit kilogram pound kilometer mile meter celsius fahrenheit euro dollar liter cup inch foot degree currency
unit gram ounce stone gallon pint yard kelvin km kg cm mm lb ft mi ml mph kmh usd eur gbp feet yen franc
disk space storage
memory ram
cpu processor
battery charge
uptime running up
os system operating machine computer laptop
file document
folder directory path root
tree structure layout overview ls
read show view display open print cat content see inside
create make new add write
make generate invent
overwrite replace rewrite
append end bottom extend
edit change modify swap substitute rename patch diff correct
find search look locate grep
grep occur occurrence mention contain use used line usage reference call defined definition
list show which
working current
git commit branch repository repo
repository repo github
clone copy cloned
branch checkout switch
diff compare difference change edited
status clean uncommitted untracked modified staged changed
log history recent last latest commit
blame wrote author annotate who
commit message check stage
run execute start command bash script test build make npm
job background process server
install add dependency package library pip npm
agent delegate worker subagent sub-agent assign hand
research find investigate
review reviewer audit
plan step outline
usage token cost spent spend spending price expensive burn
compact compress shorten shrink summarize summary
conversation chat history earlier said
exit quit bye goodbye close leave terminate
finish finished complete done
choose choice option ask question decide decision
skill instruction
tool capability able
tree chain draw
question answer asked
stackoverflow so overflow exchange
wikipedia wiki encyclopedia encyclopaedia
whole full complete entire
summary short introduction beginning
object cube sphere cylinder plane cone mesh
material color colour paint red green blue yellow
move rotate scale shift
scene open
python code script
login log sign connect authorize auth authentication
setup set configure enable
profile switch
page webpage
javascript render headless browser scrape selector js
member user
"""


@cache
def _concepts() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for group in _GROUPS.split("\n"):
        stems = dict.fromkeys(map(stem, group.split()))
        for one in stems:
            found[one] = (*found.get(one, ()), f"={next(iter(stems))}")
    return found


def concepts(word: str) -> tuple[str, ...]:
    """The concepts that the stem of a word may stand for, under names that no word has."""
    return _concepts().get(word, ())


_DEEDS = {
    "delete": "delete remove cancel drop erase forget stop end kill discard unsubscribe leave clear rid undo uninstall",
    "create": "create make add new write put set start schedule save keep generate invent insert note store append"
    " subscribe begin open remember jot bookmark",
    "search": "search find look grep locate where mention contain",
    "read": "show list read what display see tell print view check cat who when get details which describe",
    "change": "change edit move rename rotate scale modify replace update switch correct patch rewrite turn apply",
    "run": "run execute start launch delegate have let",
    "send": "send publish push notify",
    "fetch": "download clone fetch grab save",
}


@cache
def _deeds() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for deed, said in _DEEDS.items():
        for one in dict.fromkeys(map(stem, said.split())):
            found[one] = (*found.get(one, ()), f"!{deed}")
    return found


def deeds(word: str) -> tuple[str, ...]:
    """The actions that the stem of a verb asks for, such as deletion; none for other words."""
    return _deeds().get(word, ())
