/** Shows the checklist on its own page, where it stays after the user has hidden it on the page Agents. */
import { PageHeader } from '../components/PageHeader.tsx'
import { Failed, Loading } from '../components/QueryStates.tsx'
import { Checklist } from './Checklist.tsx'
import { prefetchFirstRun, useFirstRun } from './first-run.ts'

export function FirstRunPage() {
  const { progress, error } = useFirstRun()
  return (
    <>
      <PageHeader title="Get started" about="Four steps from a new installation to a chat on your website." />
      {progress !== undefined ? <Checklist progress={progress} /> : null}
      {progress === undefined && error === null ? <Loading what="the steps" height={56} /> : null}
      {progress === undefined && error !== null ? (
        <Failed error={error} what="The steps" retry={prefetchFirstRun} />
      ) : null}
    </>
  )
}
