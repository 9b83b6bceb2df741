/** Tests that visitors can follow and cancel turns that run on another replica. */
import { describe, expect, test, vi } from 'vitest'
import { makeFolder, startServer } from '../support/process.ts'
import { createReplicaSettings, sharedStores } from '../support/replicas.ts'
import { shareUpstream } from '../support/start-upstream.ts'
import { createStoringAgent, storingEnv } from '../support/stored-turns.ts'
import { asVisitor, deltaText, followUntil, isEnd, say } from '../support/visitors.ts'

// Starting processes is slow.
vi.setConfig({ testTimeout: 180_000 })

const upstream = await shareUpstream()

describe.each(sharedStores)('with %s, a visitor', (store) => {
  test('can follow, cancel and continue a turn that runs on another replica', async () => {
    await upstream.clear()
    const folder = await makeFolder()
    const shared = await createReplicaSettings(store)
    const env = { ...shared, ...storingEnv(upstream), PARLEY_DATA_DIR: `${folder}/data` }
    const one = await startServer({ folder, env })
    const other = await startServer({ folder, env })
    const { key } = await createStoringAgent(one.url, shared.PARLEY_PARENT_KEY as string)
    const { token } = await asVisitor(one, key).session.mutate({})
    const here = { visitor: asVisitor(one, key, token) }
    const there = { visitor: asVisitor(other, key, token) }

    const first = await say(here, 'First. {{up:chunks 40}}{{up:delay 10}}')
    const conversation = first.conversation.id
    const query = { conversation, cursor: first.cursor }
    const [near, far] = await Promise.all([here, there].map((visitor) => followUntil(visitor, query, isEnd)))
    expect(far).toEqual(near)
    expect(deltaText(far ?? [])).toContain('w39')

    const cursor = far?.at(-1)?.id as string
    const remote = followUntil(there, { conversation, cursor }, isEnd)
    const endless = await say(here, 'Second. {{up:hang-after 3}}', { conversation })
    await followUntil(here, { conversation, cursor: endless.cursor }, (_, { length }) => length === 2)
    await there.visitor.cancel.mutate({ turn: endless.turn.id })
    expect((await remote).at(-1)?.data).toMatchObject({ turn: { status: 'cancelled' } })

    const continued = await there.visitor.continue.mutate({ turn: endless.turn.id })
    const events = await followUntil(here, { conversation, cursor: continued.cursor }, isEnd)
    expect(events.at(-1)?.data).toMatchObject({ turn: { id: continued.turn.id, status: 'completed' } })
  })
})
