/** Creates the resources to which generated requests refer, so that not all of them return 404. */
import type { Client } from '../../client/rpc/index.ts'
import { callServer, type RunningServer } from './process.ts'
import { asVisitor } from './visitors.ts'

/** The resources by the name of their path parameter or input field. */
const fields = {
  agent_id: 'agent',
  artifact_id: 'artifact',
  conversation_id: 'conversation',
  conversation: 'conversation',
  file_id: 'file',
  item_id: 'item',
  key_id: 'key',
  previous_response_id: 'response',
  response_id: 'response',
  turn_id: 'turn',
  turn: 'turn',
  visitor: 'visitor',
} as const

type Resource = (typeof fields)[keyof typeof fields]

/** The ids of the resources, and the keys for requests. */
export interface Resources {
  readonly ids: Readonly<Record<Resource, string>>
  readonly agentKey: string
}

/**
 * Returns the text that stands for the id of the resource in a generated request; undefined for other fields.
 */
export function placeholderFor(field: string): string | undefined {
  const resource = (fields as Readonly<Record<string, Resource | undefined>>)[field]
  return resource === undefined ? undefined : `known-${resource}-id`
}

/** Replaces all placeholders with the ids of existing resources. */
export function withIds(text: string, { ids }: Resources): string {
  return text.replaceAll(/known-([a-z]+)-id/g, (all, name: string) => ids[name as Resource] ?? all)
}

const definition = JSON.stringify({
  name: 'A',
  instructions: 'Answer.',
  conversations: { keep: '30d', visitor: { resume: '1d' } },
})

/**
 * Creates an agent that stores its conversations, and one resource of each kind. The parent key must be able
 * to manage keys.
 */
export async function createResources({ url }: Pick<RunningServer, 'url'>, key: string): Promise<Resources> {
  const post = async (path: string, body: object) => {
    const { status, body: answer } = await callServer(url, 'POST', path, key, body)
    if (status >= 300) throw new Error(`${path}: ${status} ${JSON.stringify(answer)}`)
    return answer
  }
  const { agent_id: agent, agent_key: agentKey } = await post('/v1/agents', { yaml: definition })
  const conversation = (await post('/v1/conversations', {})).id
  const response = await post('/v1/responses', { model: `agent/${agent}`, input: 'hello', conversation })
  const turns = await callServer(url, 'GET', `/v1/conversations/${conversation}/turns`, key)
  const items = await callServer(url, 'GET', `/v1/conversations/${conversation}/items`, key)
  const session = await beginSession(asVisitor({ url }, agentKey))
  return {
    agentKey,
    ids: {
      agent,
      artifact: (await post('/v1/artifacts', {})).artifact_id,
      conversation,
      file: await uploadFile(url, key),
      item: items.body.data[0].id,
      key: (await post('/v1/keys', { name: 'managed' })).id,
      response: response.id,
      turn: turns.body.data[0].id,
      visitor: session,
    },
  }
}

async function beginSession(visitor: Client['visitor']): Promise<string> {
  return (await visitor.session.mutate({})).token
}

async function uploadFile(url: string, key: string): Promise<string> {
  const body = new FormData()
  body.set('purpose', 'assistants')
  body.set('file', new Blob(['hello']), 'hello.txt')
  const headers = { Authorization: `Bearer ${key}` }
  const response = await fetch(`${url}/v1/files`, { method: 'POST', headers, body })
  return ((await response.json()) as { id: string }).id
}
