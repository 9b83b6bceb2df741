/** Lists the audit log's actions and their groups for the filter. */
import type { PlainKey } from '../strings/catalogue.ts'
import { t } from '../strings/language.ts'

export const actions = [
  'key.create',
  'key.register',
  'key.provision',
  'key.claim',
  'key.update',
  'key.disable',
  'key.enable',
  'key.rotate',
  'key.revoke',
  'agent_key.rotate',
  'policy.set',
  'budget.set',
  'budget.create',
  'budget.update',
  'budget.delete',
  'budget.grant',
  'budget.adjust',
  'agent.create',
  'agent.update',
  'agent.bin',
  'agent.restore',
  'agent.delete',
  'file.delete',
  'artifact.bin',
  'artifact.restore',
  'artifact.delete',
  'conversation.read',
  'conversation.export',
  'conversation.delete',
  'conversation.expire',
  'conversation.take_over',
  'conversation.hand_back',
  'provider.create',
  'provider.update',
  'provider.delete',
  'provider.test',
  'price.set',
  'price.delete',
  'meter.delete',
  'visitor.erase',
  'visitor_secret.rotate',
  'webhook.create',
  'webhook.update',
  'webhook.delete',
  'webhook.rotate',
  'session.offer',
  'session.begin',
] as const

export type Action = (typeof actions)[number]

export const actionGroups = [
  {
    group: 'keys.title',
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
  { group: 'audit.claims', actions: ['key.claim'] },
  {
    group: 'audit.policies',
    actions: [
      'policy.set',
      'budget.set',
      'budget.create',
      'budget.update',
      'budget.delete',
      'budget.grant',
      'budget.adjust',
    ],
  },
  { group: 'shell.agents', actions: ['agent.create', 'agent.update', 'agent.restore'] },
  {
    group: 'audit.deletions',
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
    group: 'conversations.title',
    actions: [
      'conversation.read',
      'conversation.export',
      'conversation.delete',
      'conversation.expire',
      'conversation.take_over',
      'conversation.hand_back',
      'visitor.erase',
      'visitor_secret.rotate',
    ],
  },
  {
    group: 'shell.providers',
    actions: ['provider.create', 'provider.update', 'provider.delete', 'provider.test'],
  },
  { group: 'prices.title', actions: ['price.set', 'price.delete', 'meter.delete'] },
  {
    group: 'audit.webhooks',
    actions: ['webhook.create', 'webhook.update', 'webhook.delete', 'webhook.rotate'],
  },
  { group: 'audit.sessions', actions: ['session.offer', 'session.begin'] },
] as const satisfies readonly { group: PlainKey; actions: readonly Action[] }[]

export function nameAction(action: string): string {
  const known = actions.find((one) => one === action)
  return known === undefined ? action : t(`audit.${known}`)
}
