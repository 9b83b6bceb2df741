/** Tests which events change the state of an artifact, and which database updates each state allows. */
import { describe, expect, test } from 'vitest'
import {
  completeLeased,
  convertArtifact,
  findNextState,
  insertArtifact,
  listStatesBefore,
  removeArtifact,
  type State,
  type StateEvent,
  stateAfter,
  stateEvents,
  states,
} from '../../src/artifacts/store.ts'
import { openTestDatabase, parentKey } from '../support/database.ts'

/** The next state for each state and event. A dash means that the event is rejected. */
const table: Readonly<Record<State, Readonly<Record<StateEvent, State | '-'>>>> = {
  unknown: { create: 'uploading', complete: '-', convert: '-', expire: '-', reject: '-', remove: '-' },
  uploading: {
    create: '-',
    complete: 'processing',
    convert: '-',
    expire: 'unknown',
    reject: 'unknown',
    remove: 'unknown',
  },
  processing: {
    create: '-',
    complete: '-',
    convert: 'ready',
    expire: '-',
    reject: 'unknown',
    remove: 'unknown',
  },
  ready: { create: '-', complete: '-', convert: '-', expire: '-', reject: '-', remove: 'unknown' },
}
const cells = states.flatMap((state) =>
  stateEvents.map((occurrence) => [state, occurrence, table[state][occurrence]] as const),
)

test('the table of state changes in this test covers every state and event', () => {
  expect(states).toEqual(Object.keys(table))
  for (const row of Object.values(table)) expect(Object.keys(row)).toEqual(stateEvents)
})

describe('an artifact', () => {
  test.each(cells)(
    'in the state %s that receives the event %s changes to %s (- means rejected)',
    (state, occurrence, next) => {
      expect(findNextState(state, occurrence) ?? '-').toBe(next)
      expect(listStatesBefore(occurrence).includes(state)).toBe(next !== '-')
      if (next !== '-') expect(stateAfter(occurrence)).toBe(next)
    },
  )
})

const one = { blob: 'one', fence: 0 }

async function storeOf(state: State) {
  const { db } = await openTestDatabase('server', ':memory:')
  const owner = 'a'.repeat(12)
  await db.insertInto('parent_keys').values(parentKey(owner)).execute()
  await insertArtifact(db, { id: 'one', parent_key_id: owner, state, created_at: 1, blob: one.blob })
  const readState = async () =>
    (await db.selectFrom('artifacts').select('state').executeTakeFirst())?.state ?? 'gone'
  return { db, readState }
}

describe("an artifact's row", () => {
  test.each(states)('in the state %s is updated only by allowed events', async (state) => {
    const moves = [
      ['complete', completeLeased],
      ['convert', convertArtifact],
    ] as const
    for (const [occurrence, move] of moves) {
      const { db, readState } = await storeOf(state)
      const next = table[state][occurrence]
      expect(await move(db, one, { acknowledged: 1 })).toBe(next !== '-')
      expect(await readState()).toBe(next === '-' ? state : next)
    }
  })

  test.each(states)('in the state %s is deleted only by allowed events', async (state) => {
    for (const occurrence of ['reject', 'remove'] as const) {
      const { db, readState } = await storeOf(state)
      const isLegal = table[state][occurrence] === 'unknown'
      expect(await removeArtifact(db, one, occurrence)).toBe(isLegal)
      expect(await readState()).toBe(isLegal ? 'gone' : state)
    }
  })
})
