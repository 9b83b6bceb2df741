/** Everything the audit log can hold, in words. */

export const actionNames = {
  'key.create': 'Parent key created',
  'key.register': 'Parent key registered',
  'key.provision': 'Automatic key made',
  'key.claim': 'Parent key claimed',
  'key.rotate': 'Parent key: new secret',
  'key.revoke': 'Parent key revoked',
  'agent_key.rotate': 'Agent key: new key',
  'policy.set': 'Model policy set',
  'budget.set': 'Budget set',
  'agent.delete': 'Agent deleted',
  'file.delete': 'File deleted',
  'artifact.delete': 'Upload deleted',
  'session.offer': 'Sign-in link made',
  'session.begin': 'Signed in',
} as const

export type Action = keyof typeof actionNames

export const actions = Object.keys(actionNames) as readonly Action[]

/** As they are offered to choose from. */
export const actionGroups = [
  {
    group: 'Keys',
    actions: ['key.create', 'key.register', 'key.provision', 'key.rotate', 'key.revoke', 'agent_key.rotate'],
  },
  { group: 'Claims', actions: ['key.claim'] },
  { group: 'Policies and budgets', actions: ['policy.set', 'budget.set'] },
  { group: 'Deletions', actions: ['agent.delete', 'file.delete', 'artifact.delete'] },
  { group: 'Sessions', actions: ['session.offer', 'session.begin'] },
] as const satisfies readonly { group: string; actions: readonly Action[] }[]

export function nameAction(action: string): string {
  return Object.hasOwn(actionNames, action) ? actionNames[action as Action] : action
}
