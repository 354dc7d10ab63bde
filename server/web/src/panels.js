// The panels below the first. Their sections are in index.html.

import { changesPanel } from './changes.js';
import { flowPanel } from './flow.js';
import { historyPanel } from './history.js';
import { levelsPanel } from './levels.js';
import { matrixPanel } from './matrix.js';
import { maxPainPanel } from './maxpain.js';
import { sectorsPanel } from './sectors.js';
import { expirationsPanel } from './strikes.js';
import { vixPanel } from './vix.js';
import { volatilityPanel } from './volatility.js';
import { zeroDtePanel } from './zerodte.js';

/** later has the function that builds the panel of a section. */
export const later = new Map([
  ['zero-dte', zeroDtePanel],
  ['volatility', volatilityPanel],
  ['levels', levelsPanel],
  ['expirations', expirationsPanel],
  ['matrix', matrixPanel],
  ['changes', changesPanel],
  ['history', historyPanel],
  ['vix', vixPanel],
  ['max-pain', maxPainPanel],
  ['sectors', sectorsPanel],
  ['flow', flowPanel],
]);
