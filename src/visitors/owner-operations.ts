/** Defines the operations with which the owner of an agent lists, exports and erases visitors. */
import { z } from 'zod'
import { actorOf } from '../identity/audit.ts'
import { KeyRotation } from '../identity/key-schema.ts'
import { GeneratedFile, operationsOf } from '../operations/operation.ts'
import type { Dependencies } from './dependencies.ts'
import { getSecretState, rotateVisitorSecret, type SecretState } from './identity/secrets.ts'
import { createVisitorToken } from './identity/sessions.ts'
import { exportVisitor, getOwnedVisitor, listOwnedVisitors } from './owned-visitors.ts'
import {
  Erasure,
  ErasureReference,
  renderErasure,
  Visitor,
  VisitorList,
  VisitorReference,
  VisitorSecret,
  VisitorSecretReference,
  VisitorSecretRotated,
  VisitorSecretRotation,
  VisitorsQuery,
  VisitorToken,
  VisitorTokenInput,
} from './owner-schema.ts'

const { query, mutation } = operationsOf<Dependencies>()('Visitors', { callers: ['parent'] })

const agentMissing = { 404: 'Agent not found.' }
const notFound = { 404: 'There is no visitor with this id.' }
const JSON_LINES = 'application/jsonl'

function databaseOf({ config }: Pick<Dependencies, 'config'>): 'sqlite' | 'postgres' {
  return config.databaseUrl === undefined ? 'sqlite' : 'postgres'
}

export const visitorsOperations = {
  list: query({
    http: { method: 'GET', path: '/v1/visitors' },
    docs: {
      summary: 'List visitors, last seen first',
      description: 'Contains the visitors who have sent a message to an agent that stores conversations.',
    },
    input: VisitorsQuery,
    output: VisitorList,
    run: ({ context: { deps, caller }, input }) => listOwnedVisitors(deps, caller.tenantId, input),
  }),

  get: query({
    http: { method: 'GET', path: '/v1/visitors/{visitor_id}' },
    docs: { summary: 'Get a visitor', failures: notFound },
    input: VisitorReference,
    output: Visitor,
    run: ({ context: { deps, caller }, input }) => getOwnedVisitor(deps, caller.tenantId, input.visitor_id),
  }),

  export: query({
    http: { method: 'GET', path: '/v1/visitors/{visitor_id}/export' },
    rpc: false,
    response: { generated: JSON_LINES },
    docs: {
      summary: 'Export the data of a visitor as JSON Lines',
      description:
        'The first line is the visitor. It is followed by one line for each turn, and by lines with the items that belong to no turn. The last line has the object `export.end`; an export without it is incomplete.',
      failures: notFound,
    },
    input: VisitorReference,
    output: z.never(),
    run: async ({ context, input: { visitor_id: id } }) => {
      const { deps, caller } = context
      const pieces = await exportVisitor(deps, actorOf(context), caller.tenantId, id)
      return new GeneratedFile({ mediaType: JSON_LINES, filename: `${id}.jsonl`, pieces })
    },
  }),

  erase: mutation({
    http: { method: 'DELETE', path: '/v1/visitors/{visitor_id}' },
    response: { status: 202 },
    docs: {
      summary: 'Erase a visitor',
      description:
        "Cancels the visitor's running turns, ends the visitor's tokens, and begins to delete all data. Read the receipt with `GET /v1/erasures/{id}` (docs/visitors.md).",
      failures: notFound,
    },
    input: VisitorReference,
    output: Erasure,
    run: async ({ context, input }) => {
      const { deps, caller } = context
      const row = await deps.erasures.begin(actorOf(context), caller.tenantId, input.visitor_id)
      return renderErasure(row, databaseOf(deps))
    },
  }),

  createToken: mutation({
    http: { method: 'POST', path: '/v1/visitors/tokens' },
    response: { status: 201 },
    docs: {
      summary: 'Create a token for a visitor',
      description:
        'Returns a token for this visitor, which a front end sends together with an agent key. The token is valid for all agents of the parent key (docs/visitors.md).',
      failures: { 409: 'The visitor is being erased.' },
    },
    input: VisitorTokenInput,
    output: VisitorToken,
    run: async ({ context: { deps, caller }, input }) => {
      const { token, expiresAt, visitor } = await createVisitorToken(deps, caller.tenantId, input)
      const { id, subject } = visitor
      return {
        ...{ object: 'visitor.token' as const, token, expires_at: expiresAt },
        visitor: { id, kind: 'named' as const, subject },
      }
    },
  }),

  secret: query({
    http: { method: 'GET', path: '/v1/agents/{agent_id}/visitor-secret' },
    auth: { callers: ['parent'], wrongKind: 'invalid_api_key' },
    docs: { summary: "Get the state of an agent's visitor secret", failures: agentMissing },
    input: VisitorSecretReference,
    output: VisitorSecret,
    run: async ({ context: { deps, caller }, input: { agent_id: id } }) =>
      renderSecret(id, await getSecretState(deps, caller.tenantId, id)),
  }),

  rotateSecret: mutation({
    http: { method: 'POST', path: '/v1/agents/{agent_id}/visitor-secret' },
    auth: { callers: ['parent'], wrongKind: 'invalid_api_key' },
    request: { bodySchema: KeyRotation },
    docs: {
      summary: "Create or rotate an agent's visitor secret",
      description: 'Your server signs the identity of visitors with this secret (docs/visitors.md).',
      failures: agentMissing,
    },
    input: VisitorSecretRotation,
    output: VisitorSecretRotated,
    run: async ({ context, input: { agent_id: agentId, overlap_seconds: overlap } }) => {
      const { deps, caller } = context
      const agent = { tenantId: caller.tenantId, agentId }
      const { secret, ...state } = await rotateVisitorSecret(deps, actorOf(context), agent, overlap)
      return { ...renderSecret(agentId, state), secret }
    },
  }),
}

function renderSecret(agentId: string, { createdAt, previousValidUntil }: SecretState) {
  return { agent_id: agentId, created_at: createdAt, previous_valid_until: previousValidUntil }
}

export const erasuresOperations = {
  get: query({
    http: { method: 'GET', path: '/v1/erasures/{erasure_id}' },
    docs: {
      summary: 'Get the receipt of an erasure',
      failures: { 404: 'There is no erasure with this id.' },
    },
    input: ErasureReference,
    output: Erasure,
    run: async ({ context: { deps, caller }, input }) =>
      renderErasure(await deps.erasures.get(caller.tenantId, input.erasure_id), databaseOf(deps)),
  }),
}
