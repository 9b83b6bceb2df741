/** Creates the agent whose turns the benchmark stores, and the requests for its turns. */
import { BenchFailure } from './connection.ts'
import type { Server } from './processes.ts'
import { agentYaml, post } from './requests.ts'
import type { Contestant, Outcome } from './rounds.ts'

export const CHAT_PATH = '/v1/chat/completions'

/** Creates an agent that stores its turns; returns its key. */
export async function createStoringAgent({ port }: Server, parentKey: string): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/agents`, {
    method: 'POST',
    headers: { authorization: `Bearer ${parentKey}`, 'content-type': 'application/yaml' },
    body: `${agentYaml}conversations:\n  keep: 30d\n`,
  })
  const text = await response.text()
  if (response.status !== 201) throw new BenchFailure(`The agent was not created: ${text}`)
  return (JSON.parse(text) as { agent_key: string }).agent_key
}

export function turnBody(isStored: boolean): string {
  const messages = [{ role: 'user', content: 'Which herbs stand a dry balcony?' }]
  return JSON.stringify({ messages, stream: true, store: isStored })
}

/** Returns the same turn without and with storage, on one server. */
export function offAndOn(server: Server, key: string): Contestant[] {
  return [false, true].map((isStored) => ({ server, request: post(CHAT_PATH, key, turnBody(isStored)) }))
}

/** Returns each round's CPU time of a server, or of its main thread, per unit of work, in microseconds. */
export function microsPer(
  units: number,
  outcome: Outcome<unknown>,
  part: 'cpuNs' | 'mainCpuNs' = 'cpuNs',
): number[] {
  return outcome[part].map((cpuNs) => cpuNs / 1e3 / units)
}
