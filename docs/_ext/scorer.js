// Scores of the search: lessons and guides come before pages with the same words, reference pages and the changelog after.
const LATER = [
  [/^(start|own_table|python|estimators)$/, -3],
  [/^(data|certify|limits|compare|reports|experiments)$/, -2],
  [/^(api|keys|commands|columns|cards|benchmarks)$/, 3],
  [/^(tables|generated|gallery|papers|extending)\//, 4],
  [/^(contributing|architecture)$/, 4],
  [/^changes$/, 30],
];

var Scorer = {
  score: ([page, , , , score]) => score - LATER.reduce((sum, [name, less]) => sum + (name.test(page) ? less : 0), 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
