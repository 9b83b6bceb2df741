/** Defines the audit log's action names and their groups for the filter. */

export const actionNames = {
  'key.create': 'Parent key created',
  'key.register': 'Parent key registered',
  'key.provision': 'Automatic key created',
  'key.claim': 'Parent key claimed',
  'key.update': 'Parent key changed',
  'key.disable': 'Parent key disabled',
  'key.enable': 'Parent key enabled',
  'key.rotate': 'Parent key rotated',
  'key.revoke': 'Parent key revoked',
  'agent_key.rotate': 'Agent key rotated',
  'policy.set': 'Model policy set',
  'budget.set': 'Budget set',
  'agent.create': 'Agent created',
  'agent.update': 'Agent updated',
  'agent.bin': 'Agent moved to the bin',
  'agent.restore': 'Agent restored',
  'agent.delete': 'Agent deleted',
  'file.delete': 'File deleted',
  'artifact.bin': 'Artifact moved to the bin',
  'artifact.restore': 'Artifact restored',
  'artifact.delete': 'Artifact deleted',
  'conversation.read': 'Conversation read',
  'conversation.export': 'Conversations exported',
  'conversation.delete': 'Conversation deleted',
  'conversation.expire': 'Conversations expired',
  'provider.create': 'Provider added',
  'provider.update': 'Provider changed',
  'provider.delete': 'Provider deleted',
  'provider.test': 'Provider tested',
  'visitor.erase': 'Visitor erased',
  'webhook.create': 'Webhook created',
  'webhook.update': 'Webhook changed',
  'webhook.delete': 'Webhook deleted',
  'webhook.rotate': 'Webhook secret rotated',
  'session.offer': 'Sign-in link created',
  'session.begin': 'Signed in',
} as const

export type Action = keyof typeof actionNames

export const actions = Object.keys(actionNames) as readonly Action[]

export const actionGroups = [
  {
    group: 'Keys',
    actions: [
      'key.create',
      'key.register',
      'key.provision',
      'key.update',
      'key.disable',
      'key.enable',
      'key.rotate',
      'key.revoke',
      'agent_key.rotate',
    ],
  },
  { group: 'Claims', actions: ['key.claim'] },
  { group: 'Policies and budgets', actions: ['policy.set', 'budget.set'] },
  { group: 'Agents', actions: ['agent.create', 'agent.update', 'agent.restore'] },
  {
    group: 'Deletions',
    actions: [
      'agent.bin',
      'agent.delete',
      'file.delete',
      'artifact.bin',
      'artifact.restore',
      'artifact.delete',
    ],
  },
  {
    group: 'Conversations',
    actions: [
      'conversation.read',
      'conversation.export',
      'conversation.delete',
      'conversation.expire',
      'visitor.erase',
    ],
  },
  {
    group: 'Providers',
    actions: ['provider.create', 'provider.update', 'provider.delete', 'provider.test'],
  },
  {
    group: 'Webhooks',
    actions: ['webhook.create', 'webhook.update', 'webhook.delete', 'webhook.rotate'],
  },
  { group: 'Sessions', actions: ['session.offer', 'session.begin'] },
] as const satisfies readonly { group: string; actions: readonly Action[] }[]

export function nameAction(action: string): string {
  return Object.hasOwn(actionNames, action) ? actionNames[action as Action] : action
}
