/** Shows the checklist on its own page, where it stays after the user has hidden it on the Agents page. */
import { PageHeader } from '../components/PageHeader.tsx'
import { Failed, Loading } from '../components/QueryStates.tsx'
import { t } from '../strings/language.ts'
import { Checklist } from './Checklist.tsx'
import { prefetchFirstRun, useFirstRun } from './first-run.ts'

export function FirstRunPage() {
  const { progress, error } = useFirstRun()
  return (
    <>
      <PageHeader title={t('firstRun.title')} about={t('firstRun.about')} />
      {progress !== undefined ? <Checklist progress={progress} /> : null}
      {progress === undefined && error === null ? <Loading what="steps" height={56} /> : null}
      {progress === undefined && error !== null ? (
        <Failed error={error} what="steps" retry={prefetchFirstRun} />
      ) : null}
    </>
  )
}
