/** Creates and reads budgets over the API. */
import type { Answer, TestApp } from './app.ts'
import { ownerOf } from './usage.ts'

/** Sends one request about budgets, by default with the parent key. */
export function callBudgets(
  app: TestApp,
  method: string,
  path = '',
  body?: object,
  key = app.key,
): Promise<Answer> {
  return app.call(method, `/v1/budgets${path}`, { key, ...(body !== undefined && { body }) })
}

/** Returns a daily budget of 5,000 tokens for the parent key, with changes. */
export function ofKey(app: TestApp, more: object = {}) {
  const scope = { type: 'key', id: ownerOf(app).tenantId }
  return { scope, unit: 'tokens', period: 'day', limit: '5000', ...more }
}

/** Creates a budget; returns its id. */
export async function createBudget(app: TestApp, budget: object): Promise<string> {
  const { status, body, text } = await callBudgets(app, 'POST', '', budget)
  if (status !== 201) throw new Error(text)
  return body.id
}

/** Creates a daily budget of one US dollar for the parent key, with changes; returns its id. */
export function createUsdBudget(app: TestApp, more: object = {}): Promise<string> {
  return createBudget(app, ofKey(app, { unit: 'usd', limit: '1', ...more }))
}

export async function readBudget(app: TestApp, id: string) {
  return (await callBudgets(app, 'GET', `/${id}`)).body
}
