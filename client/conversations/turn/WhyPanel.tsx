/** Shows a turn's result, the timeline of its steps, and its figures. */
import { Anchor, Code } from '@mantine/core'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { CopyButton } from '../../components/CopyButton.tsx'
import { Failed, Loading } from '../../components/QueryStates.tsx'
import { TextLink } from '../../components/text.tsx'
import { renderMilliseconds, renderNumber, renderUsd } from '../../format.ts'
import { t } from '../../strings/language.ts'
import { Fact, FactList } from '../about/FactList.tsx'
import { explain } from '../explain.ts'
import { isRunning, itemsQuery, type Turn, type TurnDetails, turnQuery } from '../queries.ts'
import { StatusLabel } from '../status.tsx'
import { type Diagnostics, type Step, toSteps } from './timeline.ts'

export function WhyPanel({ turn }: { readonly turn: Turn }) {
  const { data, error, refetch } = useQuery(turnQuery(turn))
  const problem = explain(turn)
  const kinds = [
    ...(turn.background ? [t('conversations.background')] : []),
    ...(turn.kind === 'continuation' ? [t('conversations.continuation')] : []),
  ]
  return (
    <section aria-label={t('conversations.whyTurn', { number: turn.number })} className="side-section">
      <header className="why-head">
        <h2>{t('conversations.turn', { number: turn.number })}</h2>
        <StatusLabel status={turn.status} />
      </header>
      {kinds.length === 0 ? null : <p className="side-empty">{kinds.join(' · ')}</p>}
      {problem === undefined ? null : (
        <p className="why-problem" data-status={turn.status}>
          {problem}
          {turn.error_code === null ? null : (
            <>
              {' '}
              <TextLink to="/conversations" search={{ error: turn.error_code }} size="xs">
                {t('conversations.sameError')}
              </TextLink>
            </>
          )}
        </p>
      )}
      {isRunning(turn) ? <p className="side-empty">{t('conversations.whyRunning')}</p> : null}
      {data === undefined && error === null ? <Loading what="turn" rows={4} height={40} /> : null}
      {error === null ? null : <Failed error={error} what="turn" retry={() => void refetch()} />}
      {data === undefined || isRunning(turn) ? null : <Explanation turn={data} />}
    </section>
  )
}

function Explanation({ turn }: { readonly turn: TurnDetails }) {
  const items = useInfiniteQuery(itemsQuery(turn.conversation_id)).data?.pages.flatMap(({ data }) => data)
  const steps = toSteps(turn, items?.toReversed())
  const text = JSON.stringify(turn, null, 2)
  return (
    <>
      {steps.length === 0 ? (
        <p className="side-empty">{t('conversations.noDiagnostics')}</p>
      ) : (
        <ol className="why-steps" aria-label={t('conversations.timeline')}>
          {steps.map((step, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the steps of a turn never change
            <StepView key={index} step={step} />
          ))}
        </ol>
      )}
      <Figures turn={turn} />
      <details className="why-raw">
        <summary>{t('conversations.rawData')}</summary>
        <CopyButton text={text} what={t('conversations.rawData')} />
        <Code block tabIndex={0} role="region" aria-label={t('conversations.rawData')}>
          {text}
        </Code>
      </details>
    </>
  )
}

function StepView({ step: { tone, title, detail, durationMs, span } }: { readonly step: Step }) {
  const from = span === undefined ? 0 : Math.min(span.from, 0.98)
  const width = span === undefined ? 0 : Math.max(span.to - from, 0.02)
  return (
    <li data-tone={tone}>
      <p className="why-title">
        <bdi>{title}</bdi>
        {durationMs === undefined ? null : <span className="why-time">{renderMilliseconds(durationMs)}</span>}
      </p>
      {detail === undefined || detail === '' ? null : <p className="why-detail">{detail}</p>}
      {span === undefined ? null : (
        <div className="why-bar" aria-hidden="true">
          <span style={{ insetInlineStart: `${from * 100}%`, width: `${width * 100}%` }} />
        </div>
      )}
    </li>
  )
}

function Figures({ turn }: { readonly turn: TurnDetails }) {
  const { tokens, budget, resumes = 0 }: Diagnostics = turn.diagnostics
  const { agent_id: agentId, agent_version: version, first_event_ms: first, duration_ms: duration } = turn
  const cached = tokens?.input_tokens_details?.cached_tokens ?? 0
  const reasoning = tokens?.output_tokens_details?.reasoning_tokens ?? 0
  return (
    <FactList>
      {agentId === null || version === null ? null : (
        <Fact name={t('conversations.version')}>
          <Anchor
            component={Link}
            to="/agents/$agentId/history"
            params={{ agentId } as never}
            search={{ version } as never}
            size="sm"
          >
            {t('conversations.versionNumber', { number: version })}
          </Anchor>
        </Fact>
      )}
      <Fact name={t('conversations.tokens')}>
        {t('conversations.tokensInOut', { input: turn.prompt_tokens, output: turn.completion_tokens })}
      </Fact>
      {cached === 0 ? null : <Fact name={t('conversations.cachedTokens')}>{renderNumber(cached)}</Fact>}
      {reasoning === 0 ? null : (
        <Fact name={t('conversations.reasoningTokens')}>{renderNumber(reasoning)}</Fact>
      )}
      {turn.cost === null ? null : <Fact name={t('usage.cost')}>{renderUsd(Number(turn.cost))}</Fact>}
      {first === null ? null : <Fact name={t('conversations.firstToken')}>{renderMilliseconds(first)}</Fact>}
      {duration === null ? null : (
        <Fact name={t('conversations.duration')}>{renderMilliseconds(duration)}</Fact>
      )}
      {budget == null ? null : (
        <Fact name={t('conversations.budget')}>
          {t('conversations.budgetUsed', { reserved: budget.reserved, used: budget.settled })}
        </Fact>
      )}
      {resumes === 0 ? null : <Fact name={t('conversations.resumes')}>{renderNumber(resumes)}</Fact>}
      <Fact name={t('conversations.requestId')} isWide>
        <TextLink to="/usage" search={{ view: 'calls', request: turn.request_id }} inherit>
          <Code>{turn.request_id}</Code>
        </TextLink>
      </Fact>
    </FactList>
  )
}
