/** Defines the API operations on agents. */
import { z } from 'zod'
import { actorOf } from '../identity/audit.ts'
import { AgentKeyRotated, KeyRotation, renderRotation } from '../identity/key-schema.ts'
import { openPolicy } from '../models/policy.ts'
import { DEFINITION_BYTES_PER_REQUEST } from '../operations/access.ts'
import { operationsOf } from '../operations/operation.ts'
import {
  createAgent,
  deleteAgent,
  entityTagOf,
  getAgent,
  replaceAgent,
  restoreVersion,
  rotateAgentKey,
} from './agents.ts'
import { BIN_SECONDS, binAgent, deleteBinnedAgent, listBinnedAgents, restoreBinnedAgent } from './bin.ts'
import { type AgentDirectory, getOwnAgent } from './cache.ts'
import { checkDefinition, DefinitionCheck, definitionSchema, parseDefinition } from './definition.ts'
import type { Dependencies } from './dependencies.ts'
import { listAgentsWith, listVersions } from './list.ts'
import {
  AgentBinList,
  AgentBinned,
  AgentBinQuery,
  AgentListQuery,
  AgentNames,
  AgentNamesQuery,
  AgentRestored,
  renderBin,
} from './list-schema.ts'
import { getModelPolicy, replaceModelPolicy } from './model-policy/model-policy.ts'
import { AgentModelPolicy, ModelPolicyBody, ModelPolicyReplacement } from './model-policy/schema.ts'
import {
  AgentCreated,
  AgentDeleted,
  AgentDetail,
  AgentList,
  AgentReference,
  AgentUpdated,
  AgentVersionList,
  AgentVersionReference,
  AgentVersionsQuery,
  DefinitionBody,
  DefinitionReplacement,
  renderAgentCreated,
  renderAgentDetail,
  renderAgentList,
  renderAgentUpdated,
  renderVersionList,
  VersionBody,
} from './schema.ts'
import { AgentSelf, renderAgentSelf } from './self-schema.ts'
import { listNamesOf } from './store.ts'

const notFound = { 404: 'Agent not found.' }

const { query, mutation } = operationsOf<Dependencies & { readonly agents: AgentDirectory }>()('Agents', {
  callers: ['parent'],
  wrongKind: 'invalid_api_key',
})

const definitionRequest = {
  body: 'definition',
  definitionSchema,
  bytesPerRequest: DEFINITION_BYTES_PER_REQUEST,
} as const

/** The agent id in the response for an unsaved definition. */
const DRAFT_ID = 'draft'

export const agentsOperations = {
  create: mutation({
    http: { method: 'POST', path: '/v1/agents' },
    request: definitionRequest,
    response: { status: 201 },
    docs: { summary: 'Create an agent' },
    input: VersionBody,
    output: AgentCreated,
    run: async ({ context, input }) => {
      const { deps, caller } = context
      return renderAgentCreated(deps, await createAgent(deps, actorOf(context), caller.tenantId, input))
    },
  }),

  list: query({
    http: { method: 'GET', path: '/v1/agents' },
    docs: { summary: 'List your agents' },
    input: AgentListQuery,
    output: AgentList,
    run: async ({ context: { deps, caller }, input }) =>
      renderAgentList(deps, await listAgentsWith(deps, caller.tenantId, input)),
  }),

  names: query({
    input: AgentNamesQuery,
    output: AgentNames,
    run: ({ context: { deps, caller }, input }) => listNamesOf(deps.db, caller.tenantId, input.ids),
  }),

  me: query({
    http: { method: 'GET', path: '/v1/agents/me' },
    auth: { callers: ['agent'], acceptsAnyVisitor: true },
    docs: { summary: 'Get the agent that the agent key belongs to' },
    input: z.object({}),
    output: AgentSelf,
    run: async ({ context: { deps, caller } }) => renderAgentSelf(deps, await getOwnAgent(deps, caller)),
  }),

  check: mutation({
    request: definitionRequest,
    input: DefinitionBody,
    output: DefinitionCheck,
    run: ({ input }) => checkDefinition(input.yaml, input.format),
  }),

  describeDraft: mutation({
    request: definitionRequest,
    input: DefinitionBody,
    output: AgentSelf,
    run: ({ context: { deps }, input }) => {
      const definition = parseDefinition(input.yaml, input.format)
      return renderAgentSelf(deps, { row: { id: DRAFT_ID }, definition, policy: openPolicy })
    },
  }),

  definitionSchema: query({
    input: z.object({}),
    output: z.record(z.string(), z.unknown()),
    run: () => definitionSchema,
  }),

  get: query({
    http: { method: 'GET', path: '/v1/agents/{agent_id}' },
    docs: { summary: 'Get an agent', failures: notFound },
    input: AgentReference,
    output: AgentDetail,
    run: async ({ context, input }) => {
      const agent = await getAgent(context.deps, context.caller.tenantId, input.agent_id)
      context.setHeader('ETag', entityTagOf(agent))
      return renderAgentDetail(context.deps, agent)
    },
  }),

  replace: mutation({
    http: { method: 'PUT', path: '/v1/agents/{agent_id}' },
    request: { ...definitionRequest, bodySchema: VersionBody, headers: { 'if-match': 'if_match' } },
    docs: {
      summary: "Replace an agent's definition",
      failures: { ...notFound, 412: 'The agent has changed since the version in `If-Match`.' },
    },
    input: DefinitionReplacement,
    output: AgentUpdated,
    run: async ({ context, input }) => {
      const { deps, caller } = context
      const { agent_id: id, if_match: ifMatch } = input
      const agent = await replaceAgent(deps, actorOf(context), caller.tenantId, id, input, { ifMatch })
      context.setHeader('ETag', entityTagOf(agent))
      return renderAgentUpdated(deps, agent)
    },
  }),

  delete: mutation({
    http: { method: 'DELETE', path: '/v1/agents/{agent_id}' },
    docs: { summary: 'Delete an agent and its key', failures: notFound },
    input: AgentReference,
    output: AgentDeleted,
    run: async ({ context, input }) => {
      await deleteAgent(context.deps, actorOf(context), context.caller.tenantId, input.agent_id)
      return { id: input.agent_id, deleted: true as const }
    },
  }),

  bin: mutation({
    http: { method: 'POST', path: '/v1/agents/{agent_id}/bin' },
    docs: {
      summary: 'Move an agent to the bin',
      description:
        'Clients see the agent as deleted, and the server rejects its key. The agent can be restored for 30 days, after which the server deletes it.',
      failures: { ...notFound, 413: 'The bin is full (`agent_quota_exceeded`).' },
    },
    input: AgentReference,
    output: AgentBinned,
    run: async ({ context, input }) => {
      const { deps, caller } = context
      const row = await binAgent(deps, actorOf(context), caller.tenantId, input.agent_id)
      return { id: row.id, binned: true as const, purge_at: row.binned_at + BIN_SECONDS }
    },
  }),

  listBin: query({
    http: { method: 'GET', path: '/v1/bin/agents' },
    docs: { summary: 'List the agents in the bin' },
    input: AgentBinQuery,
    output: AgentBinList,
    run: async ({ context: { deps, caller }, input }) =>
      renderBin(await listBinnedAgents(deps, caller.tenantId, input)),
  }),

  restoreFromBin: mutation({
    http: { method: 'POST', path: '/v1/bin/agents/{agent_id}/restore' },
    docs: {
      summary: 'Restore an agent from the bin',
      description: 'The agent keeps its id, its versions and its key. The server accepts the key again.',
      failures: {
        404: 'The agent is not in the bin.',
        413: 'The parent key already has the maximum number of agents (`agent_quota_exceeded`).',
      },
    },
    input: AgentReference,
    output: AgentRestored,
    run: async ({ context, input: { agent_id: id } }) => {
      await restoreBinnedAgent(context.deps, actorOf(context), context.caller.tenantId, id)
      return { id, restored: true as const }
    },
  }),

  deleteFromBin: mutation({
    http: { method: 'DELETE', path: '/v1/bin/agents/{agent_id}' },
    docs: {
      summary: 'Permanently delete an agent from the bin',
      failures: { 404: 'The agent is not in the bin.' },
    },
    input: AgentReference,
    output: AgentDeleted,
    run: async ({ context, input: { agent_id: id } }) => {
      await deleteBinnedAgent(context.deps, actorOf(context), context.caller.tenantId, id)
      return { id, deleted: true as const }
    },
  }),

  rotateKey: mutation({
    http: { method: 'POST', path: '/v1/agents/{agent_id}/rotate-key' },
    request: { bodySchema: KeyRotation },
    docs: { summary: "Rotate an agent's key", failures: notFound },
    input: KeyRotation.extend(AgentReference.shape),
    output: AgentKeyRotated,
    run: async ({ context, input: { agent_id, overlap_seconds } }) => {
      const { deps, caller } = context
      const actor = actorOf(context)
      const rotation = await rotateAgentKey(deps, actor, caller.tenantId, agent_id, overlap_seconds)
      return { agent_id, agent_key: rotation.key.text, ...renderRotation(rotation) }
    },
  }),

  modelPolicy: query({
    http: { method: 'GET', path: '/v1/agents/{agent_id}/model-policy' },
    docs: { summary: "Get an agent's model policy", failures: notFound },
    input: AgentReference,
    output: AgentModelPolicy,
    run: ({ context: { deps, caller }, input }) => getModelPolicy(deps, caller.tenantId, input.agent_id),
  }),

  replaceModelPolicy: mutation({
    http: { method: 'PUT', path: '/v1/agents/{agent_id}/model-policy' },
    request: { bodySchema: ModelPolicyBody, ignoredFields: ['agent_id'] },
    docs: { summary: "Replace an agent's model policy", failures: notFound },
    input: ModelPolicyReplacement,
    output: AgentModelPolicy,
    run: ({ context, input }) =>
      replaceModelPolicy(context.deps, actorOf(context), context.caller.tenantId, input.agent_id, input),
  }),

  versions: query({
    http: { method: 'GET', path: '/v1/agents/{agent_id}/versions' },
    docs: { summary: "List an agent's versions", failures: notFound },
    input: AgentVersionsQuery,
    output: AgentVersionList,
    run: async ({ context: { deps, caller }, input }) =>
      renderVersionList(await listVersions(deps, caller.tenantId, input.agent_id, input.before)),
  }),

  restore: mutation({
    http: { method: 'POST', path: '/v1/agents/{agent_id}/versions/{version}/restore' },
    docs: {
      summary: 'Restore an earlier version of an agent',
      failures: { 404: 'The agent or the version does not exist.' },
    },
    input: AgentVersionReference,
    output: AgentUpdated,
    run: async ({ context, input }) => {
      const { deps, caller } = context
      const { agent_id: id, version } = input
      const agent = await restoreVersion(deps, actorOf(context), caller.tenantId, id, version)
      context.setHeader('ETag', entityTagOf(agent))
      return renderAgentUpdated(deps, agent)
    },
  }),
}
