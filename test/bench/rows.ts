/** Lists the groups of the benchmark's rows, and measures those of chats, models and embeddings. */
import { measureBudgets } from './budgets.ts'
import { BenchFailure } from './connection.ts'
import { measureConsole } from './console.ts'
import { measureConversationLog } from './conversation-log.ts'
import { measureConversations } from './conversations.ts'
import { measureCopy } from './copy.ts'
import { measureSlowStreams, measureStart } from './footprint.ts'
import { runRequests, runStreams } from './load.ts'
import { measureReplicaLag } from './replica-lag.ts'
import { type Row, toRow } from './report.ts'
import {
  chatRequest,
  embeddingsRequest,
  isCompletion,
  isEmbeddingList,
  isModelList,
  modelsRequest,
} from './requests.ts'
import { type Contestant, compare, median, type Outcome } from './rounds.ts'
import { measureScale } from './scale.ts'
import { type BenchSetup, limitMs, model, withBoth } from './setup.ts'
import { measureSlowSync, measureStoredMemory } from './slow-storage.ts'
import { measureStatus } from './status.ts'
import { measureFiles } from './transfers.ts'
import { measureUploads } from './uploads.ts'
import { measureWidget } from './widget.ts'

/** The functions that measure each group of rows, by the group's name in `--only`. */
export const groups: Readonly<Record<string, (setup: BenchSetup) => Promise<Row[]>>> = {
  chat: measureChat,
  stream: measureStream,
  paced: measurePaced,
  'first-token': measureFirstToken,
  'slow-streams': measureSlowStreams,
  models: measureModels,
  embeddings: measureEmbeddings,
  files: measureFiles,
  uploads: measureUploads,
  status: measureStatus,
  start: measureStart,
  widget: measureWidget,
  console: measureConsole,
  scale: measureScale,
  copy: measureCopy,
  budgets: measureBudgets,
  conversations: measureConversations,
  'conversation-log': measureConversationLog,
  'slow-sync': measureSlowSync,
  'stored-memory': measureStoredMemory,
  'replica-lag': measureReplicaLag,
}

type Key = 'parentKey' | 'agentKey'

/** Compares chat requests on the baseline and on Parley with each of the keys. */
async function compareChat<T>(
  setup: BenchSetup,
  options: { stream: boolean; keys: readonly Key[] },
  compareServers: (contestants: readonly Contestant[]) => Promise<T>,
): Promise<T> {
  const { stream, keys } = options
  const withModel = chatRequest(setup.parentKey, { stream, model })
  // With an agent key, the request contains no model, because the agent's definition specifies it.
  const requests = { parentKey: withModel, agentKey: chatRequest(setup.agentKey, { stream }) }
  return withBoth(setup, (bare, ours) =>
    compareServers(
      keys.flatMap((key) => [
        { server: bare, request: withModel },
        { server: ours, request: requests[key] },
      ]),
    ),
  )
}

/** Returns each round's CPU time per unit of work, in microseconds. */
function microsPer(units: number, outcome: Outcome<unknown>): number[] {
  return outcome.cpuNs.map((cpuNs) => cpuNs / 1e3 / units)
}

function perSecond(units: number, outcome: Outcome<unknown>): number[] {
  return outcome.elapsedMs.map((elapsedMs) => (units * 1e3) / elapsedMs)
}

async function measureChat(setup: BenchSetup): Promise<Row[]> {
  const count = 2_000
  const outcomes = await compareChat(
    setup,
    { stream: false, keys: ['parentKey', 'agentKey'] },
    (contestants) =>
      compare(contestants, setup.effort, ({ server: { port }, request }) =>
        runRequests({ port, request, connections: 32, count, isRight: isCompletion, limitMs }),
      ),
  )
  // Microseconds per request are equal to milliseconds per 1,000 requests.
  const [bare = [], parent = [], bareAgain = [], agent = []] = outcomes.map((outcome) =>
    microsPer(count, outcome),
  )
  const rates = outcomes.map((outcome) => perSecond(count, outcome))
  const [bareRate = [], parentRate = [], bareAgainRate = [], agentRate = []] = rates
  return [
    toRow('chat, parent key: CPU ms per 1,000', bare, parent, { ratio: 1.25 }),
    toRow('chat, agent key: CPU ms per 1,000', bareAgain, agent, { ratio: 1.4 }),
    toRow('chat, parent key: requests/s', bareRate, parentRate, undefined),
    toRow('chat, agent key: requests/s', bareAgainRate, agentRate, undefined),
  ]
}

async function measureStream(setup: BenchSetup): Promise<Row[]> {
  const load = { connections: 50, streamsEach: 2, chunks: 400 }
  await setup.plan({ chunks: load.chunks, chunksPerWrite: 4, intervalMs: 0 })
  const outcomes = await compareChat(
    setup,
    { stream: true, keys: ['parentKey', 'agentKey'] },
    (contestants) =>
      compare(contestants, setup.effort, ({ server: { port }, request }) =>
        runStreams({ ...load, port, request, limitMs }),
      ),
  )
  const units = load.connections * load.streamsEach * load.chunks
  const [bare = [], parent = [], bareAgain = [], agent = []] = outcomes.map((outcome) =>
    microsPer(units, outcome),
  )
  return [
    toRow('stream at full speed, parent key: CPU µs a chunk', bare, parent, { ratio: 1.5 }),
    toRow('stream at full speed, agent key: CPU µs a chunk', bareAgain, agent, { ratio: 2 }),
  ]
}

async function measurePaced(setup: BenchSetup): Promise<Row[]> {
  const load = { connections: 200, streamsEach: 1, chunks: 50 }
  const warmUp = { connections: 50, streamsEach: 10, chunks: load.chunks }
  const outcomes = await compareChat(setup, { stream: true, keys: ['parentKey'] }, async (contestants) => {
    // Warms up without delays between chunks, because delays would make the warm-up take a minute.
    await setup.plan({ chunks: load.chunks, chunksPerWrite: 1, intervalMs: 0 })
    for (const { server, request } of contestants) {
      await runStreams({ ...warmUp, port: server.port, request, limitMs })
    }
    await setup.plan({ chunks: load.chunks, chunksPerWrite: 1, intervalMs: 20 })
    return compare(contestants, { ...setup.effort, warmUps: 1 }, ({ server: { port }, request }) =>
      runStreams({ ...load, port, request, limitMs }),
    )
  })
  const [bare = [], ours = []] = outcomes.map((outcome) => microsPer(load.connections * load.chunks, outcome))
  return [toRow('200 streams at 50 chunks/s: CPU µs a chunk', bare, ours, { ratio: 1.15 })]
}

async function measureFirstToken(setup: BenchSetup): Promise<Row[]> {
  const load = { connections: 1, streamsEach: 200, chunks: 4 }
  await setup.plan({ chunks: load.chunks, chunksPerWrite: 1, intervalMs: 0 })
  const outcomes = await compareChat(setup, { stream: true, keys: ['parentKey'] }, (contestants) =>
    compare(contestants, setup.effort, async ({ server: { port }, request }) =>
      median(await runStreams({ ...load, port, request, limitMs })),
    ),
  )
  const [bare = [], ours = []] = outcomes.map((outcome) => outcome.results)
  return [toRow('time to first token: p50 ms', bare, ours, { ratio: 1.3 })]
}

async function measureModels(setup: BenchSetup): Promise<Row[]> {
  const count = 2_000
  const request = modelsRequest(setup.parentKey)
  const outcomes = await withBoth(setup, (bare, ours) =>
    compare(
      [bare, ours].map((server) => ({ server, request })),
      setup.effort,
      ({ server: { port } }) =>
        runRequests({ port, request, connections: 32, count, isRight: isModelList, limitMs }),
    ),
  )
  const [bare = [], ours = []] = outcomes.map((outcome) => microsPer(count, outcome))
  return [toRow('models list: CPU ms per 1,000', bare, ours, { ratio: 0.8 })]
}

async function measureEmbeddings(setup: BenchSetup): Promise<Row[]> {
  const count = 60
  const float = embeddingsRequest(setup.parentKey, model, 'float')
  const base64 = embeddingsRequest(setup.parentKey, model, 'base64')
  const outcomes = await withBoth(setup, (bare, ours) =>
    compare(
      [float, base64].flatMap((request) => [bare, ours].map((server) => ({ server, request }))),
      setup.effort,
      ({ server: { port }, request }) =>
        runRequests({ port, request, connections: 8, count, isRight: isEmbeddingList, limitMs }),
    ),
  )
  const [bare = [], ours = [], bareBase64 = [], oursBase64 = []] = outcomes.map((outcome) =>
    microsPer(count, outcome),
  )
  const goal = { ratio: 1.15 }
  return [
    toRow('embeddings, 64 x 1536 numbers: CPU ms per 1,000', bare, ours, goal),
    toRow('embeddings, 64 x 1536 in base64: CPU ms per 1,000', bareBase64, oursBase64, goal),
  ]
}

/** Measures a group; returns its rows, or the error message of a BenchFailure. */
export async function measureGroup(name: string, setup: BenchSetup): Promise<Row[] | string> {
  try {
    return (await groups[name]?.(setup)) ?? []
  } catch (error) {
    if (error instanceof BenchFailure) return error.message
    throw error
  }
}
