"""Sentences that make pages longer and different without stating any fact of the world; tables.

They hold no year, number or name, so no question can be answered from them by chance.
"""

from __future__ import annotations

from corpus_builder.atlas.lexicon import words

FILLERS: dict[str, tuple[str, ...]] = {
    "season": words("spring summer autumn winter"),
    "hour": words("dawn|noon|dusk|nightfall|first light|closing time"),
    "sky": words("low cloud|sea fog|thin snow|clear frost|warm rain|a dry east wind"),
    "trade": words("bakers coopers weavers carters glaziers ferrymen saddlers gardeners tanners"),
    "thing": words(
        "a brass key|an oak chest|a torn map|a blue jug|a school slate|a tin whistle|a cracked bell"
    ),
    "mood": words("patient cheerful stubborn wary generous sleepy proud thrifty"),
    "crop": words("barley rye hops flax plums pears lentils mustard"),
    "sound": words("hammers|gulls|church bells|market cries|millstones|fiddles|steam whistles"),
    "paper": words("parish book|customs ledger|school chronicle|harbour log|guild roll|court file"),
    "colour": words("ochre slate-blue moss-green russet chalk-white tar-black"),
}
PLACE = (
    "In {season} the lanes smell of {crop} and the {trade} work with their doors open.",
    "Old maps mark the spot with a {colour} square and no further remark.",
    "Under {sky} the roofs look {colour}, which painters have tried to catch for generations.",
    "The {paper} complains of {sound} at {hour} and of carts left in the way.",
    "People here are called {mood} by their neighbours and do not mind it.",
    "Between the two bridges the {trade} keep a stall that opens at {hour}.",
    "A flood once carried off {thing}, which children still look for.",
    "Fields of {crop} reach to the first houses, and hedges keep the wind out.",
    "Walkers are told to come in {season}, before {sky} closes the upper paths.",
    "The museum room keeps {thing} whose owner was never found.",
    "At {hour} one hears {sound}, then nothing for a while.",
    "Most houses have {colour} shutters, a custom the {trade} are said to have begun.",
    "Guides like to begin at the pump, where {sound} carry far on still days.",
    "The road commission calls the paving {mood} and promises better stone.",
)
LIFE = (
    "Friends remembered a {mood} person who rose at {hour} and walked in {sky}.",
    "A notebook bound in {colour} cloth mentions {thing} again and again, without saying why.",
    "The {paper} shows a quarrel with the {trade}, settled by a shared supper.",
    "Every {season} was spent away from the desk, among fields of {crop}.",
    "Pupils were taught to listen for {sound} and to write down what they heard.",
    "One portrait survives: a {colour} coat, a {mood} look, and {thing} on the table.",
    "Letters were answered at {hour}, and never on market days.",
    "Critics found the manner {mood}; the {trade} bought it all the same.",
    "Money was short in the first years, and {crop} soup was the usual supper.",
    "Among the belongings listed in the {paper} were {thing} and a pair of {colour} gloves.",
    "Visitors were led through the garden in {sky} and sent home with {crop}.",
    "A cousin sold {thing} to pay for paper, and the {trade} bought it back.",
    "The walk home led past {colour} barns, and always began at {hour}.",
    "In old age only {sound} could still disturb the afternoon sleep.",
)
WORK = (
    "The first drawings, on {colour} paper, were made at {hour} in a kitchen.",
    "An inventory in the {paper} lists {thing} among the tools.",
    "The {trade} were against it at first and {mood} about it later.",
    "It was tested in {sky}, with {sound} for company.",
    "Every {season} the whole thing is cleaned, oiled and counted.",
    "A copy was paid for in {crop}, as was usual then.",
    "The paint was {colour} for many years, until the {trade} chose another.",
    "Reports call the work {mood} and the workers more so.",
    "What remains of the trial piece lies beside {thing} in a glass case.",
    "At {hour} the doors were opened, and {sound} were drowned by applause.",
    "The {paper} has a page on the matter, half of it eaten by mice.",
    "Apprentices learn the story in their first {season} and tell it with additions.",
    "No accident is recorded, except that {thing} was lost in {sky}.",
    "The bill, on {colour} paper, was settled with two sacks of {crop}.",
)
REPORT = (
    "Neighbours complained of {sound} at {hour}, but most were {mood}.",
    "The {trade} have asked for work of their own near by.",
    "A last meeting was held in {sky}, with tea and {crop} bread.",
    "The old plans, on {colour} paper, are shown in the entrance.",
    "Somebody had left {thing} on the steps as a comment.",
    "The work is to be finished before {season}, the builders say.",
    "The vote is entered in the {paper}, where anyone may read it.",
    "Asked about delays, the foreman was {mood} and spoke of {sky}.",
    "Schoolchildren were given the day off and listened to {sound}.",
    "A collection among the {trade} paid for the flags.",
    "Carts will be led round by the mill road, where {sound} have been heard at {hour}.",
    "The last works of this kind, in a {season} of {sky}, were over sooner than promised.",
    "An older neighbour brought {thing} to the meeting and asked that it be kept.",
)
TITLES = ("Notes", "In daily life", "What is told", "Impressions", "Remarks")
